// Authenticates requests by access tokens (RFC 6750, RFC 9449): plugins verify tokens, and bound tokens require a proof.
import { hash } from 'node:crypto'
import type { Socket } from 'node:net'
import { attributeError } from '../http/describe-thrown.ts'
import { HostError, StartError } from '../http/errors.ts'
import { isLoopback } from '../http/guard.ts'
import type { HostContext, HostMiddleware } from '../kernel/endpoint.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { Route } from '../kernel/route.ts'
import { type User, userKey } from '../kernel/user.ts'
import { plainText } from '../mcp/plain-text.ts'
import type { AccessServices } from '../mcp/routes/access-decider.ts'
import { challenge, proofAlgorithmsFor, servicesOf, withOtherChallenges } from './authorize.ts'
import { boundKey, hasBoundToken } from './claims.ts'

const MAX_TOKEN_LENGTH = 12 * 1_024

const SCHEME = /^(?:bearer|(dpop))(?: +|$)/i
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

interface PresentedToken {
  readonly token: string
  /** The token was presented with the DPoP scheme (RFC 9449 section 7.1). */
  readonly isDPoP: boolean
  /** SHA-256 of the token in base64url; computed once. */
  readonly digest: () => string
}

type Presented = PresentedToken | { readonly refused: string; readonly isDPoP: boolean; readonly malformed?: true }

/** The credential of each connection's last request. */
const lastOf = new WeakMap<Socket, { readonly header: string; readonly shown: PresentedToken }>()

function readCredential(ctx: HostContext): Presented | undefined {
  if (ctx.querystring !== '' && 'access_token' in ctx.query) {
    return {
      refused: 'tokens in the query are not accepted; send the token in the Authorization header',
      isDPoP: false,
      malformed: true,
    }
  }
  const header = ctx.req.headers.authorization
  if (header === undefined) return undefined
  const { socket } = ctx.req
  const last = lastOf.get(socket)
  if (last?.header === header) return last.shown
  const shown = readHeader(header)
  if (shown && 'token' in shown) lastOf.set(socket, { header, shown })
  return shown
}

function presentToken(token: string, isDPoP: boolean): PresentedToken {
  let known: string | undefined
  const digest = () => {
    known ??= hash('sha256', token, 'base64url')
    return known
  }
  return { token, isDPoP, digest }
}

function readHeader(header: string): Presented | undefined {
  const scheme = SCHEME.exec(header)
  if (!scheme) {
    // Node joins repeated headers, so it is unclear which credential is valid.
    return /,\s*(?:bearer|dpop)(?:\s|$)/i.test(header) ? REPEATED_HEADER : undefined
  }
  const token = header.slice(scheme[0].length)
  if (token.includes(',')) return REPEATED_HEADER
  const isDPoP = scheme[1] !== undefined
  if (token.length > MAX_TOKEN_LENGTH) {
    return { refused: `the token is longer than ${MAX_TOKEN_LENGTH} characters`, isDPoP }
  }
  if (TOKEN.test(token)) return presentToken(token, isDPoP)
  return { refused: `the Authorization header contains no ${isDPoP ? 'DPoP' : 'bearer'} token`, isDPoP }
}

const REPEATED_HEADER: Presented = { refused: 'more than one Authorization header', isDPoP: false, malformed: true }

/** The reason for a refused proof. The texts reach client and log and must not contain parts of the proof. */
export type ProofProblem =
  | {
      readonly refused: string
      /** Error codes of RFC 9449 section 7.1. */
      readonly error: 'invalid_token' | 'invalid_dpop_proof' | 'use_dpop_nonce'
      readonly isBound?: true
    }
  | { readonly unavailable: string; readonly retryAfter: number }
  /** The key or user has sent too many proofs. */
  | { readonly limited: string; readonly retryAfter: number }

export interface BoundToken {
  readonly route: Route
  readonly digest: string
  readonly thumbprint: string
  readonly user: string
}

/** Requirements for proofs of possession, created by `enforceDPoP`. */
export interface ProofPolicy {
  readonly accepts: boolean
  /** True: unbound tokens are refused. */
  readonly required: boolean
  /** `proof`: bound tokens pass without a proof (`explain`). `all`: unbound tokens also pass (tests). */
  readonly waived?: 'proof' | 'all' | undefined
  /** Called for each bound token that is refused because bound tokens are not accepted. */
  readonly missed?: () => void
  /** Resolves to undefined if the request has a valid and unused proof. */
  check(ctx: HostContext, shown: BoundToken): Promise<ProofProblem | undefined>
}

/** Refuses bound tokens; the default without DPoP. */
export const NO_PROOFS: ProofPolicy = {
  accepts: false,
  required: false,
  check: async () => ({ refused: 'proofs (DPoP) are not accepted here', error: 'invalid_token' }),
}

const invalidToken = (refused: string) => ({ refused, error: 'invalid_token' as const })

async function findProofProblem(
  ctx: HostContext,
  policy: ProofPolicy,
  shown: { readonly route: Route; readonly isDPoP: boolean; digest(): string },
  user: User,
): Promise<ProofProblem | undefined> {
  const { accepts, required, waived } = policy
  const thumbprint = boundKey(user.claims)
  if (thumbprint === null) return invalidToken('the token is bound to an unsupported key (cnf)')
  if (waived === 'all') return undefined
  if (thumbprint === undefined) {
    if (required) return invalidToken('the token is not bound to a key (DPoP), which is required')
    return shown.isDPoP ? invalidToken('the token is not bound to a key: send it with the scheme Bearer') : undefined
  }
  if (!accepts) {
    policy.missed?.()
    return invalidToken('the token is bound to a key, but bound tokens (DPoP) are not accepted')
  }
  if (waived === 'proof') return undefined
  if (!shown.isDPoP) {
    return { ...invalidToken('the token is bound to a key: send it with the scheme DPoP and a proof'), isBound: true }
  }
  return policy.check(ctx, { route: shown.route, digest: shown.digest(), thumbprint, user: userKey(user) })
}

interface RefusedToken {
  readonly refused: string
  /** For the log: the expected audience. */
  readonly audience?: readonly string[]
  /** For the log: the unverified issuer of the token, and the accepted issuers. */
  readonly issuer?: string
  readonly issuers?: readonly string[]
  /** Another authenticator of the route can accept the token. */
  readonly foreign?: true
}

/** The result of a verification by a plugin. `refused` and `unavailable` reach client and log, without parts of the token. */
export type TokenVerdict =
  | { readonly user: User }
  | RefusedToken
  | { readonly unavailable: string; readonly retryAfter: number }

/** The request that presented a token. */
export interface TokenPlace {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

/** Verifies a token. Errors become 500. `digest`: SHA-256 of the token in base64url, as a cache key. */
export type VerifyToken = (
  token: string,
  place: TokenPlace,
  digest: () => string,
) => TokenVerdict | Promise<TokenVerdict>

interface Flaw extends RefusedToken {
  readonly malformed?: true
  readonly error?: 'invalid_token' | 'invalid_dpop_proof' | 'use_dpop_nonce'
}

type Refusal = Exclude<TokenVerdict, { user: User }> | ProofProblem | Flaw

/** `isBound`: the token was presented with a proof, or requires one. */
function refuse(services: AccessServices, { route, params }: TokenPlace, flaw: Flaw, isBound: boolean): HostError {
  const { refused: description, malformed = false } = flaw
  const denial =
    route.authorize === undefined
      ? undefined
      : services.slot('access', route).authorize(route.authorize, undefined, route)
  const metadataUrl = services.slot('protectedResource', route).metadataUrlOf(route, params)
  const error = malformed ? 'invalid_request' : (flaw.error ?? 'invalid_token')
  const needed = denial?.scopes ?? []
  const scopes = needed.length > 0 ? needed : services.leastScopes(route, params)
  const proofAlgorithms = proofAlgorithmsFor(services.slot('tokenBinding', route), isBound)
  const bearer = challenge({ error, description, scopes, metadataUrl, proofAlgorithms })
  const header = withOtherChallenges(bearer, { route, params }, services)
  return new HostError(malformed ? 'invalidRequest' : 'unauthorized', {
    detail: description,
    reason: description,
    headers: { 'WWW-Authenticate': header },
  })
}

/**
 * For plugins that call upstream servers with the user's token: creates the `unauthorized` error with a challenge, so that the client signs
 * in again. `description` reaches client and log and must not contain a token.
 */
export const loginExpired = (
  services: AccessServices,
  place: TokenPlace & { readonly user?: User | undefined },
  description: string,
): HostError => refuse(services, place, { refused: description }, hasBoundToken(place.user))

const AUTHENTICATIONS = {
  name: 'mcp_host_authentications_total',
  help: 'Tokens of requests by outcome: accepted, refused, or unavailable if they could not be verified.',
  labels: ['plugin', 'outcome'],
}

function createOutcomeReporter(host: Pick<KernelHost, 'log' | 'name' | 'metrics'>) {
  const count = host.metrics.counter(AUTHENTICATIONS)
  const countOf = (outcome: string) => {
    const labels = { plugin: host.name, outcome }
    return () => count(1, labels)
  }
  const denied = (ctx: HostContext, route: Route, flaw: Flaw) => {
    const { refused: reason, audience, issuer, issuers, error } = flaw
    const wanted = {
      ...(audience && { audience }),
      ...(issuer !== undefined && { issuer: plainText(issuer, 100) }),
      ...(issuers && { issuers: issuers.slice(0, 10) }),
    }
    const fields = { denied: 'authentication', reason, ...wanted, route: route.path, ip: ctx.ip }
    // Logged at `debug`, because the first request of every client is refused for its nonce.
    if (error === 'use_dpop_nonce') host.log.debug(fields, 'requested a nonce')
    else host.log.warn({ code: 'MH1222', ...fields }, 'refused a token')
  }
  return {
    accepted: countOf('accepted'),
    refused: countOf('refused'),
    unavailable: countOf('unavailable'),
    denied,
  }
}

/**
 * Middleware for `host.authenticate`: sets the user of a verified access token. Requests without a token are anonymous; other
 * authenticators can accept foreign tokens. Default
 * `proofPolicy`: bound tokens (DPoP) are refused.
 */
export function authenticateBearer(
  host: Pick<KernelHost, 'log' | 'name' | 'metrics'>,
  verify: VerifyToken,
  proofPolicy: () => ProofPolicy = () => NO_PROOFS,
): HostMiddleware {
  const outcomes = createOutcomeReporter(host)
  const by = (thrown: HostError) => {
    attributeError(thrown, host.name)
    return thrown
  }

  function refusal(ctx: HostContext, place: TokenPlace, shown: Presented, flaw: Refusal): HostError {
    const { route } = place
    if ('retryAfter' in flaw) {
      const isLimited = 'limited' in flaw
      const detail = isLimited ? flaw.limited : flaw.unavailable
      if (isLimited) outcomes.refused()
      else outcomes.unavailable()
      outcomes.denied(ctx, route, { refused: detail })
      const headers = { 'Retry-After': String(flaw.retryAfter) }
      return by(new HostError(isLimited ? 'tooManyRequests' : 'unavailable', { detail, reason: detail, headers }))
    }
    outcomes.refused()
    outcomes.denied(ctx, route, flaw)
    const isBound = shown.isDPoP || ('isBound' in flaw && flaw.isBound === true)
    return by(refuse(servicesOf(host), place, flaw, isBound))
  }

  return async (ctx, next) => {
    const { route, params } = ctx.state
    const shown = route && readCredential(ctx)
    if (!route || shown === undefined) return next()
    const policy = proofPolicy()
    const { accepts, required } = policy
    if (shown.isDPoP && !accepts) return next()
    const place = { route, params }
    const verdict = 'token' in shown ? await verify(shown.token, place, shown.digest) : shown
    if (!('user' in verdict)) {
      const refused = () => refusal(ctx, place, shown, verdict)
      if (!('foreign' in verdict)) throw refused()
      ctx.state.unrecognised ??= refused
      return next()
    }
    const { user } = verdict
    // The common case of plain bearer tokens needs no further await.
    if ((shown.isDPoP || required || user.claims['cnf'] !== undefined) && 'token' in shown) {
      const flaw = await findProofProblem(ctx, policy, { ...shown, route }, user)
      if (flaw) throw refusal(ctx, place, shown, flaw)
    }
    outcomes.accepted()
    ctx.state.user = user
    return next()
  }
}

/**
 * Returns both forms of a URL: `https://a.example` and `https://a.example/` are the same resource (RFC 3986 section
 * 6.2.3), and clients send either.
 */
export function sameResources(audience: string): string[] {
  if (!/^https?:\/\/[^/?#]+\/?$/i.test(audience)) return [audience]
  const bare = audience.replace(/\/$/, '')
  return [bare, `${bare}/`]
}

/** Reports a host without a known URL, for plugins whose tokens are valid only for the route's resource. */
export function requireResource(host: Pick<KernelHost, 'config' | 'log' | 'name' | 'report' | 'routes'>): void {
  if (host.config.http.publicUrl !== undefined || isLoopback(host.config.http.host)) return
  const resourceOf = (route: Route) => servicesOf(host).slot('protectedResource', route).resourceOf(route, {})
  const unknown = host.routes.find(route => !URL.canParse(resourceOf(route)))
  if (!unknown) return
  const fix = `set http.publicUrl, or plugins.${host.name}.audience`
  const text = `routes['${unknown.path}']: the token audience is unknown, because clients do not use ${host.config.http.host}; ${fix}`
  host.report(new StartError('MH1221', text, { exitCode: 2 }).locatedAt(host.config.at))
}
