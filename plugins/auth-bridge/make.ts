// Creates the authorization server and its parts from the options. Loaded late, because oidc-provider loads slowly.

import { errors } from 'oidc-provider'
import { type GrantStore, isLoopback } from '../../core/auth.ts'
import { type PluginHost, parseDuration, type Services } from '../../core/index.ts'
import { isUnavailable } from '../../core/transport.ts'
import type { TrustedIssuers } from './assertions/trusted-issuers.ts'
import type { Bridge } from './browser/session.ts'
import { createRegisteredClients } from './clients/registered-clients.ts'
import { createAddressLimit } from './limits.ts'
import { type FilledAuthBridge, isDevelopment } from './options.ts'
import { createPages, type Logo } from './pages/index.ts'
import { Accounts } from './people/accounts.ts'
import { Consents } from './people/consents.ts'
import { createDecide } from './people/decide.ts'
import { Logins } from './people/logins.ts'
import { createRecords, createSealer, withFailures } from './records.ts'
import { createClientFetch } from './server/client-fetch.ts'
import { createProvider, type Lifetimes, refusalPage } from './server/provider.ts'
import { createResources, withFixed } from './server/resources.ts'
import type { SigningKey } from './server/signing-keys.ts'
import { settle } from './upstream/settings.ts'
import type { Upstream, UpstreamFault } from './upstream/upstream.ts'

const SIGN_INS = {
  name: 'mcp_host_bridge_sign_ins_total',
  help: 'Logins that came back from the identity provider: ok, not_allowed by the config, or what failed.',
  labels: ['outcome'],
}
const RENEWALS = {
  name: 'mcp_host_bridge_renewals_total',
  help: 'Questions whether a person may still sign in: renewed, ended, or unasked where the provider did not say.',
  labels: ['outcome'],
}
const REPLAYS = {
  name: 'mcp_host_bridge_replays_total',
  help: 'Codes and refresh tokens that came again after they were used up.',
  labels: ['model'],
}

export interface BridgeFigures {
  signedIn(outcome: 'ok' | 'not_allowed' | UpstreamFault): void
  renewed(outcome: 'renewed' | 'ended' | 'unasked'): void
  replayed(model: string): void
}

export function createFigures({ figures }: Pick<PluginHost, 'figures'>): BridgeFigures {
  const signIns = figures.counter(SIGN_INS)
  const renewals = figures.counter(RENEWALS)
  const replays = figures.counter(REPLAYS)
  return {
    signedIn: outcome => signIns(1, { outcome }),
    renewed: outcome => renewals(1, { outcome }),
    replayed: model => replays(1, { model }),
  }
}

/** Documents and key sets of clients that one address may have us fetch in a minute. */
const MOST_DOCUMENTS = 30
const STORE_AWAY = 'what this server keeps cannot be reached now'

export interface BridgeParts {
  readonly host: PluginHost
  readonly services: Services
  readonly options: FilledAuthBridge
  readonly keys: PluginHost['keys']
  readonly store: GrantStore
  readonly upstream: Upstream
  readonly trusted: TrustedIssuers
  readonly signing: readonly SigningKey[]
  readonly logo: Logo | undefined
}

/** In development the metadata document of a client can be on this machine. */
const fetchAnywhere =
  (guardedFetch: typeof fetch): typeof fetch =>
  (url, init) =>
    isLoopback(new URL(String(url)).hostname) ? fetch(url, init) : guardedFetch(url, init)

const lifetimesOf = (options: FilledAuthBridge): Lifetimes => ({
  accessToken: parseDuration(options.accessToken),
  refreshToken: parseDuration(options.refreshToken),
  login: parseDuration(options.login),
  session: parseDuration(options.session),
  refreshGrace: parseDuration(options.refreshGrace),
})

function unavailable(why: string): Error {
  const error = new errors.CustomOIDCProviderError('temporarily_unavailable', why)
  return Object.assign(error, { status: 503, statusCode: 503 })
}

export function makeBridge(parts: BridgeParts): Bridge {
  const { host, services, options, keys, store, upstream, trusted, signing, logo } = parts
  const { log } = host
  const issuer = host.url(options.path)
  const lifetimes = lifetimesOf(options)
  const figures = createFigures(host)
  const failed = (error: unknown) =>
    isUnavailable(error) ? Object.assign(unavailable(STORE_AWAY), { cause: error }) : error
  const records = createRecords(withFailures(store, failed), createSealer(keys('auth-bridge records')))
  const decide = createDecide(options)
  const { login: most, refreshToken, session } = lifetimes
  const idle = Math.max(refreshToken, session)
  const logins = new Logins({ records, upstream, decide, log, clock: host.clock, most, idle, renewed: figures.renewed })
  const consents = new Consents(records, most)
  const accounts = new Accounts({ records, logins, consents, log, clock: host.clock, session, unavailable })
  const resources = withFixed(createResources(host, services, Object.keys(options.scopes)), options.provider.resources)
  const pages = createPages({
    page: { ...options.page, name: options.page.name ?? host.server.name },
    label: upstream.label,
    base: new URL(issuer).pathname,
    ...(options.provider.users && { users: options.provider.users }),
    ...(logo && { logo }),
  })
  const provider = createProvider({
    ...{ issuer, options, lifetimes, records, accounts, resources, decide, trusted, signing, log, figures },
    now: host.clock.now,
    upstream: settle(options.provider, [...host.at, 'provider']),
    clients: createRegisteredClients(keys('auth-bridge clients')),
    cookieKeys: keys('auth-bridge cookies'),
    clientFetch: createClientFetch({
      guardedFetch: isDevelopment(options) ? fetchAnywhere(services.guardedFetch) : services.guardedFetch,
      mayFetch: createAddressLimit(MOST_DOCUMENTS, host.clock),
      clock: host.clock,
    }),
    renderError: refusalPage(pages),
  })
  const known = new Set(options.clients.fixed.map(({ clientId }) => clientId))
  const formKeys = keys('auth-bridge forms')
  return {
    issuer,
    provider,
    lifetimes,
    records,
    logins,
    consents,
    accounts,
    resources,
    decide,
    upstream,
    pages,
    log,
    known,
    formKeys,
    figures,
  }
}
