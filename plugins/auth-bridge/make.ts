// Creates the authorization server from the options. Loaded on demand, because oidc-provider loads slowly.

import { isLoopback } from '../../core/auth.ts'
import type { InternalHost, Services } from '../../core/internal.ts'
import { parseDuration } from '../../core/plugin.ts'
import { isUnavailable } from '../../core/transport.ts'
import { createRecords, createSealer } from '../families/credentials/index.ts'
import type { GrantStore } from '../families/grant-store/index.ts'
import type { TrustedIssuers } from './assertions/trusted-issuers.ts'
import { createRegisteredClients } from './clients/client-rules.ts'
import { createAddressLimit } from './limits.ts'
import { type FilledAuthBridge, isDevelopment } from './options.ts'
import { createPages, type Logo } from './pages/index.ts'
import { type Consent, createAccounts, createConsents, unavailable } from './people/accounts.ts'
import { createDecide, restrictedScopes, titlesOf } from './people/decide.ts'
import { createLogins } from './people/logins.ts'
import { createClientFetch, createProvider, refusalPage } from './server/provider.ts'
import { createResources, withFixed } from './server/resources.ts'
import type { SigningKey } from './server/signing-keys.ts'
import { settle } from './upstream/settings.ts'
import type { FailureKind, Upstream } from './upstream/upstream.ts'

const MAX_DOCUMENTS = 30
const STORE_AWAY = 'the store of this server is not available now'

interface BridgeParts {
  readonly host: InternalHost
  readonly services: Services
  readonly options: FilledAuthBridge
  readonly keys: InternalHost['config']['keys']
  readonly store: GrantStore
  readonly upstream: Upstream
  readonly trusted: TrustedIssuers
  readonly signing: readonly SigningKey[]
  readonly logo: Logo | undefined
  readonly listeners: ReadonlySet<(subject: string) => void>
}

const fetchAnywhere =
  (guardedFetch: typeof fetch): typeof fetch =>
  (url, init) =>
    isLoopback(new URL(String(url)).hostname) ? fetch(url, init) : guardedFetch(url, init)

const lifetimesOf = (options: FilledAuthBridge) => ({
  accessToken: parseDuration(options.accessToken),
  refreshToken: parseDuration(options.refreshToken),
  login: parseDuration(options.login),
  session: parseDuration(options.session),
  refreshGrace: parseDuration(options.refreshGrace),
})

const createCounters = ({ metrics }: InternalHost) => ({
  signIns: metrics.counter({
    name: 'mcp_host_bridge_sign_ins_total',
    help: 'Sign-ins at the identity provider by outcome: ok, not_allowed, or the failure.',
    labels: ['outcome'],
  }),
  renewals: metrics.counter({
    name: 'mcp_host_bridge_renewals_total',
    help: 'Checks at the identity provider whether users can still sign in: renewed, ended, or unasked without a response.',
    labels: ['outcome'],
  }),
  replays: metrics.counter({
    name: 'mcp_host_bridge_replays_total',
    help: 'Codes and refresh tokens that were presented again after use.',
    labels: ['model'],
  }),
})

export type Bridge = ReturnType<typeof makeBridge>

export function makeBridge(parts: BridgeParts) {
  const { host, services, options, keys, store, upstream, trusted, signing, logo } = parts
  const { clock, log } = host
  const issuer = host.url(options.path)
  const lifetimes = lifetimesOf(options)
  const { signIns, renewals, replays } = createCounters(host)
  const failed = (error: unknown) =>
    isUnavailable(error) ? Object.assign(unavailable(STORE_AWAY), { cause: error }) : error
  const records = createRecords(store, createSealer(keys('auth-bridge records')), failed)
  const decide = createDecide(options, subject => parts.listeners.forEach(listener => void listener(subject)))
  const { login: most, refreshToken, session } = lifetimes
  const idle = Math.max(refreshToken, session)
  const renewed = (outcome: 'renewed' | 'ended' | 'unasked') => renewals(1, { outcome })
  const logins = createLogins({ records, upstream, decide, log, clock, most, idle, renewed })
  const consents = createConsents(records, most)
  const accounts = createAccounts({ records, logins, consents, log, clock, session })
  const resources = withFixed(createResources(host, services, restrictedScopes(options)), options.provider.resources)
  const pages = createPages({
    page: { ...options.page, name: options.page.name ?? host.config.server.title ?? host.config.server.name },
    label: upstream.label,
    base: new URL(issuer).pathname,
    users: options.provider.users,
    isDevelopment: isDevelopment(options),
    scopeTitles: titlesOf(options),
    logo,
  })
  const { guardedFetch } = services
  const provider = createProvider({
    ...{ issuer, options, lifetimes, records, accounts, resources, decide, trusted, signing, log },
    now: clock.now,
    replayed: model => replays(1, { model }),
    upstream: settle(options.provider, [...host.config.at, 'provider']),
    clients: createRegisteredClients(keys('auth-bridge clients')),
    cookieKeys: keys('auth-bridge cookies'),
    clientFetch: createClientFetch({
      guardedFetch: isDevelopment(options) ? fetchAnywhere(guardedFetch) : guardedFetch,
      mayFetch: createAddressLimit(MAX_DOCUMENTS, clock),
      clock,
    }),
    renderError: refusalPage(pages),
  })
  return {
    ...{ issuer, provider, lifetimes, records, logins, consents, accounts, resources, decide, upstream, pages, log },
    known: new Set(options.clients.fixed.map(({ clientId }) => clientId)),
    /** Without consents that the user or the client has ended. */
    async ongoing(list: readonly Consent[]) {
      const grants = await Promise.all(list.map(({ grantId }) => provider.Grant.find(grantId)))
      return list.filter((_, index) => grants[index] !== undefined)
    },
    formKeys: keys('auth-bridge forms'),
    signedIn: (outcome: 'ok' | 'not_allowed' | FailureKind) => signIns(1, { outcome }),
  }
}
