// Middleware for `identify` of plugins whose credential is an access token (RFC 6750, RFC 9449): reads the token, has the
// plugin verify it, asks for a proof where it is bound, answers what was refused with a challenge and logs it, without the token.

import { blame } from '../http/describe-thrown.ts'
import { HostError, StartError } from '../http/errors.ts'
import { isLoopback } from '../http/guard.ts'
import type { HostContext, HostMiddleware } from '../kernel/endpoint.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { AccessServices } from '../mcp/access-decider.ts'
import { challenge, proofAlgorithmsFor } from './access.ts'
import { boundKey, flawOf, NO_POSSESSION, type Possession, type ProofFlaw } from './possession.ts'
import { type PresentedToken, readCredential } from './read-credential.ts'

/** What a plugin found a token to be. The texts are one clause each, for client and log, with nothing of the token. */
export type TokenVerdict =
  | { readonly user: User }
  /** `audience`, for the log alone: whom it should have been for, where it is for somebody else. */
  | { readonly refused: string; readonly audience?: readonly string[] }
  /** Nobody can tell now; `retryAfter` in seconds. */
  | { readonly unavailable: string; readonly retryAfter: number }

/** The address that a token was presented at. */
export interface TokenPlace {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

/**
 * Verifies a token. What it throws is a bug: 500. `digest`: SHA-256 of the token, base64url, to remember by; it is computed
 * once while a connection shows the same token.
 */
export type VerifyToken = (
  token: string,
  place: TokenPlace,
  digest: () => string,
) => TokenVerdict | Promise<TokenVerdict>

/** What is wrong with a request's token. */
interface Flaw {
  readonly refused: string
  readonly audience?: readonly string[]
  readonly malformed?: true
  readonly error?: 'invalid_token' | 'invalid_dpop_proof' | 'use_dpop_nonce'
}

type Shown = Pick<PresentedToken, 'isDPoP'>
type Refusal = Exclude<TokenVerdict, { user: User }> | ProofFlaw | Flaw

/** `isBound`: it was shown with a proof, or should have been. */
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
  const header = challenge({ error, description, scopes, metadataUrl, proofAlgorithms })
  return new HostError(malformed ? 'invalidRequest' : 'unauthorized', {
    detail: description,
    reason: description,
    headers: { 'WWW-Authenticate': header },
  })
}

const isBoundUser = (user: User | undefined) => user !== undefined && typeof boundKey(user.claims) === 'string'

/**
 * For a plugin that knows more of a login than its token says, such as what fills the slot `upstreamTokens`: the HostError
 * `unauthorized` with the challenge of this address, by which a client signs in again. Thrown out of a handler it is answered
 * with 401 where the answer has not begun. `description`: one clause, for the client and the log, with nothing of a token.
 */
export const loginEnded = (
  services: AccessServices,
  place: TokenPlace & { readonly user?: User | undefined },
  description: string,
): HostError => refuse(services, place, { refused: description }, isBoundUser(place.user))

const AUTHENTICATIONS = {
  name: 'mcp_host_authentications_total',
  help: 'Tokens that came with requests: accepted, refused, or not to be judged (unavailable).',
  labels: ['plugin', 'outcome'],
}

/** Counts what became of tokens, and writes who was refused into the log. */
function createTold(host: Pick<KernelHost, 'log' | 'name' | 'figures'>) {
  const count = host.figures.counter(AUTHENTICATIONS)
  const tellOf = (outcome: string) => {
    const labels = { plugin: host.name, outcome }
    return () => count(1, labels)
  }
  const denied = (ctx: HostContext, route: Route, { refused: reason, audience, error }: Flaw) => {
    const wanted = audience && { audience }
    const fields = { denied: 'authentication', reason, ...wanted, route: route.path, ip: ctx.ip }
    // The first request of every client that does as it is told.
    if (error === 'use_dpop_nonce') host.log.debug(fields, 'asked for a nonce')
    else host.log.warn(fields, 'refused a token')
  }
  return {
    accepted: tellOf('accepted'),
    refused: tellOf('refused'),
    unavailable: tellOf('unavailable'),
    denied,
  }
}

/**
 * A request without a token passes as nobody; one with a token passes as its user, or not at all. `possession`: what
 * `enforceDPoP` gives; without it, tokens that are bound to a key are refused.
 */
export function identifyBearer(
  host: Pick<KernelHost, 'log' | 'name' | 'figures'>,
  services: AccessServices,
  verify: VerifyToken,
  possession: Possession = NO_POSSESSION,
): HostMiddleware {
  const told = createTold(host)
  const { accepts, required } = possession
  const by = (thrown: HostError) => {
    blame(thrown, host.name)
    return thrown
  }

  function refusal(ctx: HostContext, place: TokenPlace, shown: Shown, flaw: Refusal): HostError {
    const { route } = place
    if ('retryAfter' in flaw) {
      const isLimited = 'limited' in flaw
      const detail = isLimited ? flaw.limited : flaw.unavailable
      if (isLimited) told.refused()
      else told.unavailable()
      told.denied(ctx, route, { refused: detail })
      const headers = { 'Retry-After': String(flaw.retryAfter) }
      return by(new HostError(isLimited ? 'tooManyRequests' : 'unavailable', { detail, reason: detail, headers }))
    }
    told.refused()
    told.denied(ctx, route, flaw)
    const isBound = shown.isDPoP || ('isBound' in flaw && flaw.isBound === true)
    return by(refuse(services, place, flaw, isBound))
  }

  return async (ctx, next) => {
    const { route, params } = ctx.state
    const shown = route && readCredential(ctx)
    if (!route || shown === undefined || (shown.isDPoP && !accepts)) return next()
    const place = { route, params }
    const verdict = 'token' in shown ? await verify(shown.token, place, shown.digest) : shown
    if (!('user' in verdict)) throw refusal(ctx, place, shown, verdict)
    const { user } = verdict
    // Nearly all tokens are bearer tokens, bound to nothing: they wait for no more.
    if ((shown.isDPoP || required || user.claims['cnf'] !== undefined) && 'token' in shown) {
      const flaw = await flawOf(ctx, possession, { ...shown, route }, user)
      if (flaw) throw refusal(ctx, place, shown, flaw)
    }
    told.accepted()
    ctx.state.user = user
    return next()
  }
}

/** `https://a.example` and `https://a.example/` are one resource (RFC 3986 6.2.3), and clients send either. */
export function sameResources(audience: string): string[] {
  if (!/^https?:\/\/[^/?#]+\/?$/i.test(audience)) return [audience]
  const bare = audience.replace(/\/$/, '')
  return [bare, `${bare}/`]
}

/**
 * For a plugin whose tokens are for the route's own resource: reports where clients know this host by an address that it
 * does not know itself, so that no token could ever be for it.
 */
export function needResource(
  host: Pick<KernelHost, 'at' | 'name' | 'http' | 'routes' | 'report'>,
  services: AccessServices,
): void {
  if (host.http.publicUrl !== undefined || isLoopback(host.http.host)) return
  const resourceOf = (route: Route) => services.slot('protectedResource', route).resourceOf(route, {})
  const unknown = host.routes.find(route => !URL.canParse(resourceOf(route)))
  if (!unknown) return
  const fix = `set http.publicUrl, or plugins.${host.name}.audience`
  const text = `routes['${unknown.path}']: whom are tokens for? ${host.http.host} is not how clients reach it; ${fix}`
  host.report(new StartError(text, { exitCode: 2 }).orAt(host.at))
}
