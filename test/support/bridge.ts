// A host with auth-bridge, its identity provider, and the steps of a client and its user.

import type { BuiltInOptions } from '../../core/config/define-config.ts'
import { defineTool } from '../../core/index.ts'
import { Browser, HandClient, type Page, type TokenAnswer } from './form-browser.ts'
import {
  type IdentityProvider,
  type IdpSettings,
  startIdentityProvider,
  stopIdentityProviders,
} from './identity-provider.ts'
import type { ManualClock } from './manual-clock.ts'
import { type StartedHost, startHost, stopHosts, type TestConfig } from './start-host.ts'

type Plugins = NonNullable<TestConfig['plugins']>
type BridgeOptions = NonNullable<BuiltInOptions['auth-bridge']>

/** Returns the caller that the host identified. */
const whoami = defineTool({ name: 'whoami', handler: (_, { user }) => ({ user: user ?? null }) })
/** Describes the provider token without exposing it. */
const upstream = defineTool({
  name: 'upstream',
  input: { type: 'object', properties: { scope: { type: 'string' }, rejected: { type: 'string' } } },
  async handler({ scope, rejected }, { upstreamToken }) {
    const token = await upstreamToken({
      ...(scope !== undefined && { scope }),
      ...(rejected !== undefined && { rejected }),
    })
    return { length: token.length, seen: seen.push(token) }
  },
})

/** All provider tokens that the tool received. */
export const seen: string[] = []

export interface BridgeSettings {
  readonly idp?: IdpSettings | IdentityProvider
  readonly options?: Partial<BridgeOptions>
  readonly plugins?: Plugins
  readonly config?: Partial<TestConfig>
  readonly clock?: ManualClock
}

export interface StartedBridge extends StartedHost {
  readonly idp: IdentityProvider
  readonly issuer: string
  /** The resource of the one route. */
  readonly resource: string
  /** Aborts requests to host and provider. */
  browser(): Browser
  /** Registers a client. */
  client(metadata?: object): Promise<BridgeClient>
}

const isProvider = (idp: IdpSettings | IdentityProvider): idp is IdentityProvider => 'requests' in idp

export async function startBridge({
  idp: given = {},
  options,
  plugins,
  config,
  clock,
}: BridgeSettings = {}): Promise<StartedBridge> {
  const idp = isProvider(given) ? given : await startIdentityProvider(given)
  const provider = idp.options() as unknown as BridgeOptions['provider']
  const started = await startHost(
    {
      toolsets: { all: [whoami, upstream] },
      routes: { '/mcp': { toolsets: 'all', authorize: true } },
      ...config,
      plugins: {
        'transport-streamable': {},
        'auth-jwt': {},
        'resource-metadata': { scopesSupported: ['read', 'admin'] },
        'auth-bridge': { provider, allow: { everyone: true }, scopes: { admin: { group: 'engineering' } }, ...options },
        ...plugins,
      },
    },
    undefined,
    clock && { clock },
  )
  const issuer = `${started.url}${options?.path ?? '/auth'}`
  idp.redirects.add(`${issuer}/callback`)
  return {
    ...started,
    idp,
    issuer,
    resource: `${started.url}/mcp`,
    browser: () => new Browser(started.url, idp.origin),
    client: metadata => new BridgeClient(issuer, `${started.url}/mcp`, idp.origin, clock).start(metadata),
  }
}

/** Stops every host and provider that this file started: call it in `after`. */
export async function stopBridges(): Promise<void> {
  await stopHosts()
  await stopIdentityProviders()
}

/** A client of the bridge. Its user gives consent by a click. */
export class BridgeClient extends HandClient {
  readonly #resource: string
  readonly #clock: ManualClock | undefined

  constructor(issuer: string, resource: string, provider: string, clock?: ManualClock) {
    super(issuer, [provider])
    this.#resource = resource
    this.#clock = clock
  }

  /** Opens the consent page; the provider signs the user in. */
  ask(parameters: Readonly<Record<string, string | undefined>> = {}): Promise<Page> {
    return this.browser.page(this.authorizeUrl({ resource: this.#resource, ...parameters }))
  }

  /** Allows or denies, and follows the redirects. */
  async decide(page: Page, decision: 'allow' | 'deny' = 'allow'): Promise<URL> {
    const next = await this.browser.click(page, { decision })
    if ('html' in next) throw new Error(`not allowed: ${next.status} ${next.html}`)
    return next.redirect
  }

  /** The whole login, until tokens are issued. */
  async logIn(parameters: Readonly<Record<string, string>> = {}): Promise<TokenAnswer> {
    const back = await this.decide(await this.ask(parameters))
    return this.exchange(back)
  }

  exchange(back: URL, form: Readonly<Record<string, string>> = {}): Promise<TokenAnswer> {
    const code = back.searchParams.get('code')
    if (code === null) throw new Error(`no code: ${back}`)
    return this.token({ ...this.codeForm(code), ...form })
  }

  /** Advances the manual clock of the bridge by two seconds and refreshes: a grant allows 60 refreshes a minute. */
  async refreshLater(token: string): Promise<TokenAnswer> {
    if (!this.#clock) throw new Error('the bridge was started without a manual clock')
    await this.#clock.advance(2_000)
    return this.refresh(token)
  }

  refresh(token: string, form: Readonly<Record<string, string>> = {}): Promise<TokenAnswer> {
    return this.token({ grant_type: 'refresh_token', refresh_token: token, ...form })
  }
}
