// Access tokens of an API: requested, cached, and renewed before expiry or after a refusal.
import { LRUCache } from 'lru-cache'
import type { CallContext } from '../../../core/index.ts'
import type { Services } from '../../../core/internal.ts'
import type { Clock } from '../../../core/plugin.ts'
import { digest } from './records.ts'
import { readKey, type UpstreamAuth } from './schema.ts'

/** One request that needs a token. */
export interface AuthorizedRequest {
  readonly ctx: CallContext
  readonly method: string
  /** The URL without the query. */
  readonly url: string
}

export interface Authorization {
  /** Alternating names and values. */
  readonly headers: readonly string[]
  /** Secret values, which no message contains. */
  readonly secrets: readonly string[]
}

/** The response that refused a token. */
export interface Refusal {
  readonly origin: string
  readonly dpopNonce?: string | undefined
  /** The `WWW-Authenticate` header of a 403 response that requires more scopes. */
  readonly stepUp?: string | undefined
}

/** The header if a response requires more scopes. */
export const readStepUp = (status: number | undefined, challenge: string | undefined): string | undefined =>
  status === 403 && challenge?.includes('insufficient_scope') ? challenge : undefined

export interface TokenSource {
  authorize(request: AuthorizedRequest): Promise<Authorization>
  /** After a 401 or 403 response: true if a repetition can succeed. */
  invalidateToken(used: Authorization, refusal: Refusal): boolean
}

/** A login of callers, by its id. */
export interface CallerLogin {
  readonly logins: {
    source(id: string, auth: Extract<UpstreamAuth, { readonly kind: 'login' }>, apiUrl: string): TokenSource
  }
  readonly id: string
}

export interface TokenSettings {
  /** The config path of the option, for messages. */
  readonly path: string
  readonly apiUrl: string
  /** The token own of a document, for `client-credentials` without issuer. */
  readonly tokenEndpoint?: string | undefined
  /** Hosts with private addresses that `tokenEndpoint` can have. */
  readonly allowHosts?: readonly string[]
  readonly services: () => Pick<Services, 'createTokenClient'>
  /** The login of the caller; required for `login`. */
  readonly login?: CallerLogin | undefined
  readonly clock: Clock
}

type TokenClient = Awaited<ReturnType<Services['createTokenClient']>>
type Issued = Awaited<ReturnType<TokenClient['request']>>

interface CachedToken {
  readonly token: Issued
  /** Expiry, milliseconds since the epoch. */
  readonly until: number
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
/** Maximum cached tokens of callers. */
const MAX_TOKENS = 1_000
/** Lifetime of a token without `expires_in`, and the longest time before expiry at which it is renewed, milliseconds. */
const DEFAULT_LIFETIME = 300_000
const MAX_LEEWAY = 60_000

/** Tokens by key, requested once for simultaneous calls. */
function createTokenCache(clock: Clock) {
  const cache = new LRUCache<string, CachedToken>({ max: MAX_TOKENS })
  const pending = new Map<string, Promise<Issued>>()

  async function request(key: string, obtain: () => Promise<Issued>): Promise<Issued> {
    const token = await obtain()
    const lifetime = token.expiresIn === undefined ? DEFAULT_LIFETIME : token.expiresIn * 1_000
    const until = clock.now() + lifetime - Math.min(MAX_LEEWAY, lifetime / 10)
    if (until > clock.now()) cache.set(key, { token, until })
    return token
  }

  return {
    get(key: string, obtain: () => Promise<Issued>): Promise<Issued> | Issued {
      const cached = cache.get(key)
      if (cached && cached.until > clock.now()) return cached.token
      const inFlight = pending.get(key)
      if (inFlight) return inFlight
      const requested = request(key, obtain).finally(() => pending.delete(key))
      pending.set(key, requested)
      return requested
    },
    /** Drops the refused token. Returns true if it was cached. */
    drop(accessToken: string): boolean {
      for (const [key, { token }] of cache.entries()) {
        if (token.accessToken === accessToken) return cache.delete(key)
      }
      return false
    },
  }
}

type RequestedAuth = Extract<UpstreamAuth, { readonly kind: 'client-credentials' | 'exchange' }>

/** One client for each secret, so that a rotated secret is used. */
function createClients(auth: RequestedAuth, { path, apiUrl, tokenEndpoint, allowHosts = [], services }: TokenSettings) {
  let current: { readonly key: string; readonly client: Promise<TokenClient> } | undefined
  return async (): Promise<TokenClient> => {
    const clientSecret = await readKey(auth.clientSecret, `${path}.clientSecret`)
    const isExchange = auth.kind === 'exchange'
    const privateKey = isExchange ? undefined : await readKey(auth.privateKey, `${path}.privateKey`)
    if (!isExchange && clientSecret !== undefined && (auth.issuer ?? tokenEndpoint) === undefined) {
      throw new Error(`${path} requires \`issuer\` with \`clientSecret\``)
    }
    const key = digest(JSON.stringify([clientSecret, privateKey]))
    if (current?.key !== key) {
      const own = isExchange
        ? { tokenEndpoint: auth.tokenEndpoint }
        : {
            issuer: auth.issuer,
            ...(auth.issuer === undefined && { tokenEndpoint, networkPolicy: { allowHosts } }),
            dpop: auth.dpop,
          }
      const client = services().createTokenClient({ apiUrl, clientId: auth.clientId, clientSecret, privateKey, ...own })
      client.catch(() => {
        current = undefined
      })
      current = { key, client }
    }
    return current.client
  }
}

function createRequestedTokens(auth: RequestedAuth, settings: TokenSettings): TokenSource {
  const getClient = createClients(auth, settings)
  const cache = createTokenCache(settings.clock)
  const tokens = new WeakMap<Authorization, { readonly client: TokenClient; readonly token: Issued }>()

  async function requestToken(client: TokenClient, { ctx }: AuthorizedRequest): Promise<Issued> {
    const { signal } = new AbortController()
    const common = { scope: auth.scopes?.join(' '), ...(auth.resource !== undefined && { resource: auth.resource }) }
    if (auth.kind === 'client-credentials') {
      return cache.get('', () => client.request('client_credentials', common, signal))
    }
    const subject = await ctx.upstreamToken()
    const { audience } = auth
    const parameters = { ...common, audience, subject_token: subject, subject_token_type: ACCESS_TOKEN }
    return cache.get(digest(subject), () => client.request(EXCHANGE, parameters, signal))
  }

  return {
    async authorize(request) {
      const client = await getClient()
      const token = await requestToken(client, request)
      const headers = await client.headers(token, request.method, request.url)
      const authorization = { headers, secrets: [token.accessToken] }
      tokens.set(authorization, { client, token })
      return authorization
    },
    invalidateToken(used, { origin, dpopNonce, stepUp }) {
      const sent = tokens.get(used)
      if (!sent || stepUp !== undefined) return false
      if (dpopNonce !== undefined && sent.token.tokenType === 'DPoP') {
        sent.client.rememberNonce(origin, dpopNonce)
        return true
      }
      return cache.drop(sent.token.accessToken)
    },
  }
}

/** A token that the API refused. */
export interface Rejected {
  readonly token: string
  readonly stepUp?: string | undefined
}

/**
 * Tokens of callers. `readToken` receives the token that the API refused in the same call. Each call requests at most one new
 * token, and with `canStepUp` one more with further scopes.
 */
export function callerTokens(
  readToken: (ctx: CallContext, rejected: Rejected | undefined) => Promise<string>,
  canStepUp = false,
): TokenSource {
  const sent = new WeakMap<Authorization, { readonly ctx: CallContext; readonly token: string }>()
  const rejected = new WeakMap<CallContext, Rejected>()
  return {
    async authorize({ ctx }) {
      const token = await readToken(ctx, rejected.get(ctx))
      const authorization = { headers: ['authorization', `Bearer ${token}`], secrets: [token] }
      sent.set(authorization, { ctx, token })
      return authorization
    },
    invalidateToken(used, { stepUp }) {
      const last = sent.get(used)
      if (!last || (stepUp !== undefined && !canStepUp)) return false
      const previous = rejected.get(last.ctx)
      if (previous && (stepUp === undefined || previous.stepUp !== undefined)) return false
      rejected.set(last.ctx, { token: last.token, stepUp })
      return true
    },
  }
}

/** The caller's own token of the identity provider, from auth-bridge. */
function createBridgeTokens({ scope }: Extract<UpstreamAuth, { readonly kind: 'bridge' }>): TokenSource {
  const requestedScope = typeof scope === 'object' ? scope.join(' ') : scope
  return callerTokens((ctx, rejected) =>
    ctx.upstreamToken({
      ...(requestedScope !== undefined && { scope: requestedScope }),
      ...(rejected && { rejected: rejected.token }),
    }),
  )
}

export function createTokenSource(auth: UpstreamAuth, parts: TokenSettings): TokenSource {
  if (auth.kind === 'bridge') return createBridgeTokens(auth)
  if (auth.kind !== 'login') return createRequestedTokens(auth, parts)
  const { login, apiUrl } = parts
  if (!login) throw new Error('there is no host for logins')
  return login.logins.source(login.id, auth, apiUrl)
}
