// Configures oidc-provider: PKCE, client metadata documents, registration, JWT access tokens, refresh token rotation.
import type { EventEmitter } from 'node:events'
import { LRUCache } from 'lru-cache'
import Provider, {
  type Client,
  errors,
  interactionPolicy,
  type KoaContextWithOIDC,
  type ResourceServer,
} from 'oidc-provider'
import { readLimited } from '../../../core/auth.ts'
import type { Clock, Logger } from '../../../core/plugin.ts'
import { withTimeout } from '../../../core/transport.ts'
import type { Records } from '../../families/credentials/index.ts'
import { sendPage } from '../../families/pages/index.ts'
import type { TrustedIssuers } from '../assertions/trusted-issuers.ts'
import {
  fixedClients,
  isRemembered,
  type RegisteredClients,
  registrationOf,
  settleMetadata,
} from '../clients/client-rules.ts'
import { parseRedirectPattern, type RedirectPattern } from '../clients/redirects.ts'
import { type FilledAuthBridge, isDevelopment } from '../options.ts'
import type { Pages } from '../pages/index.ts'
import { type Account, type Accounts, consentIn } from '../people/accounts.ts'
import type { Decide, Standing } from '../people/decide.ts'
import type { Settings } from '../upstream/settings.ts'
import { createAdapter } from './adapter.ts'
import { assertedIn, assertionMetadata, takeAssertions } from './id-jag.ts'
import {
  cookieNames,
  longCookie,
  type ProviderContext,
  RETRY_AFTER,
  ROUTES,
  SIGN_IN_TTL,
  shortCookie,
  withQueryOnly,
} from './oidc-provider.ts'
import type { Resources } from './resources.ts'
import { SIGNING, type SigningKey } from './signing-keys.ts'

const MAX_DOCUMENT = 16_384
const TIMEOUT = 2_500
/** Cache lifetime, milliseconds: oidc-provider fetches the key set for each token request. */
const KEPT_FOR = 10_000
const MAX_CACHED = 1_000

interface ClientFetchSettings {
  /** Resolves a name once, and connects to that address if it is public. */
  readonly guardedFetch: typeof fetch
  readonly mayFetch: (ip: string) => boolean
  readonly clock: Clock
}

interface Kept {
  readonly headers: Headers
  readonly bytes: Uint8Array
}

export function createClientFetch({ guardedFetch, mayFetch, clock }: ClientFetchSettings) {
  const perf = { now: () => clock.monotonic() }
  const kept = new LRUCache<string, Promise<Kept>>({ max: MAX_CACHED, ttl: KEPT_FOR, ttlResolution: 0, perf })

  async function load(url: string, given: RequestInit['headers'], signal: AbortSignal): Promise<Kept> {
    if (!url.startsWith('https:')) throw new Error('the URL is not https')
    const ip = Provider.ctx?.ip
    // On the consent page there is no request context.
    if (ip !== undefined && !mayFetch(ip)) throw new Error('too many documents for one address in a minute')
    const response = await guardedFetch(url, { redirect: 'manual', signal, ...(given && { headers: given }) })
    const { status, headers, body } = response
    if (status === 200) {
      const bytes = await readLimited(response, MAX_DOCUMENT)
      if (bytes) return { headers, bytes }
      throw new Error(`the response has more than ${MAX_DOCUMENT} bytes`)
    }
    await body?.cancel()
    throw new Error(`the response has the status ${status}`)
  }

  /** oidc-provider waits for each fetch without a limit. */
  async function loadInTime(url: string, given: RequestInit['headers']): Promise<Kept> {
    const stop = new AbortController()
    const late = () => {
      stop.abort(new Error(`no complete response within ${TIMEOUT} ms`))
      throw stop.signal.reason
    }
    return withTimeout(load(url, given, stop.signal), TIMEOUT, late, clock)
  }

  return async (url: string, { headers: given }: RequestInit): Promise<Response> => {
    let loading = kept.get(url)
    if (!loading) {
      loading = loadInTime(url, given)
      kept.set(url, loading)
      loading.catch(() => kept.delete(url))
    }
    const { headers, bytes } = await loading
    return new Response(Buffer.from(bytes), { headers })
  }
}

function addCheck(
  { checks }: NonNullable<ReturnType<ReturnType<typeof interactionPolicy.base>['get']>>,
  [reason, description, error]: readonly [string, string, string],
  check: (ctx: ProviderContext) => boolean,
  index?: number,
) {
  checks.add(new interactionPolicy.Check(reason, description, error, ctx => check(ctx as ProviderContext)), index)
}

const wasAnswered = ({ oidc }: ProviderContext): boolean => {
  const { grantId } = (oidc.result?.['consent'] ?? {}) as { grantId?: string }
  return grantId !== undefined && grantId === oidc.grant.jti
}

const isElsewhere = (ctx: ProviderContext): boolean =>
  Object.keys(ctx.oidc.resourceServers).some(resource => !consentIn(ctx)?.resources.includes(resource))

function isMoreThanGranted({ oidc }: ProviderContext): boolean {
  const account = oidc.account as Account | undefined
  return Object.entries(oidc.resourceServers).some(([resource, { scopes }]) => {
    const granted = new Set(oidc.grant.getResourceScope(resource).split(' '))
    return [...oidc.requestParamScopes].some(
      scope => scopes.has(scope) && !granted.has(scope) && account?.standing.mayHave(scope) === true,
    )
  })
}

function createPolicy(choosesUser: boolean) {
  const policy = interactionPolicy.base()
  const [login, consent] = policy
  if (!login || !consent) throw new Error('oidc-provider has no prompts')
  if (choosesUser)
    addCheck(login, ['choose_user', 'a user must be chosen', 'login_required'], ({ oidc }) => {
      return oidc.result?.['login'] === undefined
    })
  addCheck(login, ['login_ended', 'the login has ended', 'login_required'], ({ oidc }) => {
    return oidc.session.accountId !== undefined && oidc.account === undefined
  })
  consent.checks.remove('native_client_prompt')
  const eachTime = ['asked_each_time', 'this client needs consent each time', 'consent_required'] as const
  addCheck(consent, eachTime, ctx => !isRemembered(ctx.oidc.client) && !wasAnswered(ctx), 0)
  addCheck(consent, ['not_asked_yet', 'the user has not allowed this client yet', 'consent_required'], ctx => {
    // A grant that is not saved has no id.
    return ctx.oidc.grant.jti === undefined && !wasAnswered(ctx)
  })
  addCheck(consent, ['more_resources', 'the client requests a token for another resource', 'consent_required'], ctx => {
    return !wasAnswered(ctx) && isElsewhere(ctx)
  })
  addCheck(consent, ['more_scopes', 'the client requests more scopes than were allowed', 'consent_required'], ctx => {
    return !wasAnswered(ctx) && isMoreThanGranted(ctx)
  })
  return policy
}

const NO_SUCH_CLIENT = 'client is invalid'
const UNKNOWN =
  'The client that sent you here is not registered, or its registration has ended. Remove this server in the client, add it again, and sign in.'

/** Implements `renderError` of oidc-provider. mcp-remote requests JSON to check its registration. */
export const refusalPage =
  (pages: Pages) => (ctx: ProviderContext, out: Readonly<Record<string, string | undefined>>) => {
    const { status } = ctx
    if (ctx.accepts('html', 'json') === 'json') {
      ctx.set('Cache-Control', 'no-store')
      ctx.body = out
      return
    }
    const text =
      out['error_description'] === NO_SUCH_CLIENT
        ? UNKNOWN
        : (out['error_description'] ?? 'The client sent an invalid request.')
    const page = { title: 'Invalid sign-in request', text, detail: out['error'] ?? '', isError: true }
    sendPage(ctx, pages.message(page), status)
  }

const MAX_TEXT = 200

function causeOf({ cause }: Error): string | undefined {
  let inner = cause
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause
  return inner instanceof Error ? inner.message.slice(0, MAX_TEXT) : undefined
}

function logRefusals(provider: Provider, log: Logger): void {
  const logError =
    (at: string) =>
    ({ oidc }: KoaContextWithOIDC, refusal: errors.OIDCProviderError) => {
      const { message: error, error_description: text, error_detail: detail = causeOf(refusal) } = refusal
      const id = oidc.params?.['client_id']
      const client = typeof id === 'string' ? id.slice(0, MAX_TEXT) : undefined
      log.info({ code: 'MH2138', at, client, error, text, detail }, 'refused a client request')
    }
  provider.on('authorization.error', logError('authorization'))
  provider.on('grant.error', logError('token'))
}

interface ProviderSettings {
  readonly issuer: string
  readonly options: FilledAuthBridge
  readonly lifetimes: Readonly<Record<'accessToken' | 'refreshToken' | 'login' | 'session' | 'refreshGrace', number>>
  readonly now: () => number
  readonly records: Records
  readonly clients: RegisteredClients
  readonly accounts: Accounts
  readonly resources: Resources
  readonly decide: Decide
  readonly trusted: TrustedIssuers
  readonly upstream: Settings
  readonly signing: readonly SigningKey[]
  readonly cookieKeys: readonly Buffer[]
  readonly log: Logger
  readonly replayed: (model: string) => void
  readonly clientFetch: ReturnType<typeof createClientFetch>
  readonly renderError: (ctx: ProviderContext, out: Readonly<Record<string, string | undefined>>) => void
}

const CODE_TTL = 60
const DOCUMENT_AGE = { min: 10, max: 3_600 }

const seconds = (milliseconds: number) => Math.max(1, Math.floor(milliseconds / 1_000))

const accountIn = ({ oidc }: ProviderContext) => oidc.account as Account | undefined

const describeResource =
  ({ resources, lifetimes }: ProviderSettings) =>
  (resource: string, standing?: Standing): ResourceServer => ({
    scope: resources.scopes.filter(scope => standing?.mayHave(scope) ?? true).join(' '),
    audience: resource,
    accessTokenFormat: 'jwt',
    accessTokenTTL: seconds(lifetimes.accessToken),
    jwt: { sign: { alg: SIGNING } },
  })

function resourceIndicators(settings: ProviderSettings) {
  const { resources } = settings
  const describe = describeResource(settings)
  return {
    enabled: true,
    /** If a client requested several resources, its token request must name one. */
    defaultResource(_ctx: unknown, _client: unknown, oneOf?: readonly string[]) {
      const resource = oneOf ?? resources.only
      if (resource === undefined) throw new errors.InvalidTarget('resource is required: this server has several')
      return resource
    },
    /** A request without `resource` is possibly a mix-up attack, unless the consent page prevents it. */
    useGrantedResource(ctx: ProviderContext, { kind }: { readonly kind: string }) {
      if (kind === 'AuthorizationCode' && isRemembered(ctx.oidc.client))
        throw new errors.InvalidTarget('resource is required in the token request of this client')
      return true
    },
    getResourceServerInfo(ctx: ProviderContext, resource: string) {
      const found = resources.find(resource)
      if (found === undefined) throw new errors.InvalidTarget('this server has no such resource')
      return describe(found, accountIn(ctx)?.standing)
    },
  }
}

function registration({ options, clients }: ProviderSettings) {
  const ids = new WeakMap<ProviderContext, string>()
  return {
    enabled: options.clients.registration,
    issueRegistrationAccessToken: false,
    idFactory(ctx: ProviderContext) {
      try {
        const id = clients.idOf(registrationOf(ctx.oidc.body))
        ids.set(ctx, id)
        return id
      } catch (error) {
        throw error instanceof errors.InvalidClientMetadata
          ? error
          : new errors.InvalidClientMetadata((error as Error).message)
      }
    },
    secretFactory: (ctx: ProviderContext) => clients.secretOf(ids.get(ctx) ?? ''),
  }
}

/** Defaults of RFC 7591 section 2. */
const CLIENT_DEFAULTS = {
  id_token_signed_response_alg: SIGNING,
  token_endpoint_auth_method: 'none',
  // Without refresh tokens, clients would open a browser every few minutes.
  grant_types: ['authorization_code', 'refresh_token'],
}

const ALWAYS_CHECKED = 'x_mcp_host'

/** Applies the rules in the only hook that runs before oidc-provider checks a client. */
function clientRules(options: FilledAuthBridge) {
  const patterns = options.clients.redirects.map(parseRedirectPattern)
  const own = new Map<string, RedirectPattern[]>(
    options.clients.fixed.map(({ clientId, redirects }) => [clientId, redirects.map(parseRedirectPattern)]),
  )
  const takesAssertions = options.trustedIssuers.length > 0
  return {
    properties: [ALWAYS_CHECKED],
    validator(_ctx: unknown, _key: string, _value: unknown, metadata: Record<string, unknown>) {
      const redirects = own.get(String(metadata['client_id']))
      const mayAssert = (method: unknown) => takesAssertions && (redirects !== undefined || method !== 'none')
      settleMetadata(metadata, redirects ?? patterns, mayAssert)
    },
  }
}

function claimsFor(ctx: ProviderContext) {
  const asserted = assertedIn(ctx)
  if (asserted) return { roles: asserted.roles }
  const account = accountIn(ctx)
  return account && { roles: account.standing.roles, ...account.login.person.tokenClaims, sid: account.login.id }
}

/** Returns times by the host's clock, which also verifies the tokens. */
const timesFor =
  ({ now }: ProviderSettings) =>
  (_ctx: unknown, _token: unknown, { payload }: { readonly payload: { iat: number; exp: number } }) => {
    const lifetime = payload.exp - payload.iat
    payload.iat = Math.floor(now() / 1_000)
    payload.exp = payload.iat + lifetime
  }

function configurationOf(settings: ProviderSettings): object {
  const { issuer, options, accounts, resources, signing, records, clients, lifetimes, log, now } = settings
  const refreshToken = Math.min(lifetimes.refreshToken, lifetimes.login)
  return {
    adapter: createAdapter({
      ...{ now, records, clients, refreshToken, refreshGrace: lifetimes.refreshGrace },
      replayed(model, grantId, reason) {
        settings.replayed(model)
        log.warn(
          { code: 'MH2139', model, grantId, reason },
          'a used code or refresh token was presented again: it may have been stolen',
        )
      },
    }),
    clients: fixedClients(options),
    jwks: { keys: signing.map(({ privateJwk }) => privateJwk) },
    cookies: {
      keys: settings.cookieKeys.map(key => key.toString('base64url')),
      names: cookieNames(issuer),
      long: longCookie(issuer),
      short: shortCookie(issuer),
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
      // In production no plugin verifies DPoP proofs of these tokens.
      dPoP: { enabled: isDevelopment(options) },
      pushedAuthorizationRequests: { enabled: false },
      revocation: { enabled: true },
      registration: registration(settings),
      clientIdMetadataDocument: {
        enabled: options.clients.metadataDocuments,
        ack: 'draft-02',
        cacheDuration: DOCUMENT_AGE,
      },
      resourceIndicators: resourceIndicators(settings),
    },
    routes: ROUTES,
    pkce: { required: () => true },
    responseTypes: ['code'],
    grantTypes: ['authorization_code', 'refresh_token'],
    scopes: ['openid', 'offline_access', ...resources.scopes],
    clientDefaults: CLIENT_DEFAULTS,
    enabledJWA: { idTokenSigningAlgValues: [SIGNING] },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    clientBasedCORS: () => true,
    fetch: settings.clientFetch,
    renderError: settings.renderError,
    interactions: {
      policy: createPolicy(isDevelopment(options)),
      url: (_ctx: unknown, { uid }: { uid: string }) => `${issuer}/interaction/${uid}`,
    },
    extraClientMetadata: clientRules(options),
    findAccount: (ctx: ProviderContext, id: string, token?: { grantId?: string }) => accounts.find(ctx, id, token),
    loadExistingGrant: (ctx: ProviderContext) => accounts.grantFor(ctx),
    expiresWithSession: () => false,
    rotateRefreshToken: () => true,
    issueRefreshToken: (_ctx: unknown, client: Client) => client.grantTypeAllowed('refresh_token'),
    extraTokenClaims: claimsFor,
    formats: { customizers: { jwt: timesFor(settings) } },
    ttl: {
      AccessToken: seconds(lifetimes.accessToken),
      AuthorizationCode: CODE_TTL,
      Grant: seconds(lifetimes.login),
      IdToken: seconds(lifetimes.accessToken),
      Interaction: SIGN_IN_TTL,
      RefreshToken: seconds(refreshToken),
      Session: seconds(lifetimes.session),
    },
    discovery: assertionMetadata(settings.trusted),
  }
}

export function createProvider(settings: ProviderSettings): Provider {
  const { issuer, log } = settings
  const provider = new (withQueryOnly(Provider))(issuer, configurationOf(settings))
  takeAssertions(provider, { ...settings, describe: describeResource(settings) })
  // The URLs are those of the issuer, because the caller sets X-Forwarded-*.
  provider.proxy = true
  const comeAgain = (ctx: KoaContextWithOIDC, error: Error) => {
    if ('status' in error && error.status === 503) ctx.set('Retry-After', RETRY_AFTER)
  }
  provider.on('grant.error', comeAgain)
  provider.on('authorization.error', comeAgain)
  const emitter: EventEmitter = provider
  emitter.on('error', err => log.debug({ err }, 'a request of the authorization server failed'))
  provider.on('server_error', ({ path }, err) =>
    log.error({ code: 'MH2140', err, path }, 'the authorization server failed'),
  )
  logRefusals(provider, log)
  return provider
}
