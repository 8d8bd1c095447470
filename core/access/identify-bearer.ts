// Middleware for `identify` of plugins whose credential is a bearer token (RFC 6750): reads the token, has the plugin
// verify it, answers what was refused with a challenge and logs it in one line, without the token.

import { hash } from 'node:crypto'
import type { Socket } from 'node:net'
import { blame } from '../http/describe-thrown.ts'
import { HostError, StartError } from '../http/errors.ts'
import { isLoopback } from '../http/guard.ts'
import type { HostContext, HostMiddleware } from '../kernel/endpoint.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { AccessServices } from '../mcp/access-decider.ts'
import { challenge } from './access.ts'

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

/** Characters. Node's own limit for all headers of a request is 16 kB. */
const MAX_TOKEN_LENGTH = 12 * 1_024

const SCHEME = /^bearer(?: +|$)/i
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

interface PresentedToken {
  readonly token: string
  readonly digest: () => string
}

type Presented = PresentedToken | { readonly refused: string; readonly malformed?: true }

/** What the last request of a connection showed; the next one mostly shows the same. */
const LAST = Symbol('the credential of the last request')

interface Connection extends Socket {
  [LAST]?: { readonly header: string; readonly shown: PresentedToken }
}

/** Undefined where the request shows no bearer token. */
function readToken(ctx: HostContext): Presented | undefined {
  if (ctx.querystring !== '' && 'access_token' in ctx.query) {
    return {
      refused: 'a token in the query is not accepted; it belongs into the Authorization header',
      malformed: true,
    }
  }
  const header = ctx.req.headers.authorization
  if (header === undefined) return undefined
  const connection: Connection = ctx.req.socket
  const last = connection[LAST]
  if (last?.header === header) return last.shown
  const shown = readHeader(header)
  if (shown && 'token' in shown) connection[LAST] = { header, shown }
  return shown
}

function presentToken(token: string): PresentedToken {
  let known: string | undefined
  const digest = () => {
    known ??= hash('sha256', token, 'base64url')
    return known
  }
  return { token, digest }
}

function readHeader(header: string): Presented | undefined {
  const scheme = SCHEME.exec(header)
  if (!scheme) {
    // A second header, which Node joined to one of another scheme: whose credential counts is not ours to guess.
    return /,\s*bearer(?:\s|$)/i.test(header) ? TWO_HEADERS : undefined
  }
  const token = header.slice(scheme[0].length)
  if (token.includes(',')) return TWO_HEADERS
  if (token.length > MAX_TOKEN_LENGTH) return { refused: `the token is longer than ${MAX_TOKEN_LENGTH} characters` }
  return TOKEN.test(token) ? presentToken(token) : { refused: 'the Authorization header holds no bearer token' }
}

const TWO_HEADERS: Presented = { refused: 'more than one Authorization header', malformed: true }

function refuse(
  services: AccessServices,
  { route, params }: TokenPlace,
  description: string,
  malformed: boolean,
): HostError {
  const denial =
    route.authorize === undefined
      ? undefined
      : services.slot('access', route).authorize(route.authorize, undefined, route)
  const metadataUrl = services.slot('protectedResource', route).metadataUrlOf(route, params)
  const error = malformed ? 'invalid_request' : 'invalid_token'
  const needed = denial?.scopes ?? []
  const scopes = needed.length > 0 ? needed : services.leastScopes(route, params)
  const header = challenge({ error, description, scopes, metadataUrl })
  return new HostError(malformed ? 'invalidRequest' : 'unauthorized', {
    detail: description,
    headers: { 'WWW-Authenticate': header },
  })
}

/**
 * For a plugin that knows more of a login than its token says, such as what fills the slot `upstreamTokens`: the HostError
 * `unauthorized` with the challenge of this address, by which a client signs in again. Thrown out of a handler it is answered
 * with 401 where the answer has not begun. `description`: one clause, for the client and the log, with nothing of a token.
 */
export const loginEnded = (services: AccessServices, place: TokenPlace, description: string): HostError =>
  refuse(services, place, description, false)

const AUTHENTICATIONS = {
  name: 'mcp_host_authentications_total',
  help: 'Tokens that came with requests: accepted, refused, or not to be judged (unavailable).',
  labels: ['plugin', 'outcome'],
}

/** A request without a token passes as nobody; one with a token passes as its user, or not at all. */
export function identifyBearer(
  host: Pick<KernelHost, 'log' | 'name' | 'figures'>,
  services: AccessServices,
  verify: VerifyToken,
): HostMiddleware {
  const denied = (ctx: HostContext, route: Route, reason: string, audience?: readonly string[]) => {
    const wanted = audience && { audience }
    host.log.warn({ denied: 'authentication', reason, ...wanted, route: route.path, ip: ctx.ip }, 'refused a token')
  }

  const count = host.figures.counter(AUTHENTICATIONS)
  const tellOf = (outcome: string) => {
    const labels = { plugin: host.name, outcome }
    return () => count(1, labels)
  }
  const told = { accepted: tellOf('accepted'), refused: tellOf('refused'), unavailable: tellOf('unavailable') }

  const by = (refusal: HostError) => {
    blame(refusal, host.name)
    return refusal
  }

  return async (ctx, next) => {
    const { route, params } = ctx.state
    const presented = route && readToken(ctx)
    if (!route || presented === undefined) return next()
    const place = { route, params }
    const verdict = 'token' in presented ? await verify(presented.token, place, presented.digest) : presented
    if ('user' in verdict) {
      told.accepted()
      ctx.state.user = verdict.user
      return next()
    }
    if ('unavailable' in verdict) {
      told.unavailable()
      denied(ctx, route, verdict.unavailable)
      const headers = { 'Retry-After': String(verdict.retryAfter) }
      throw by(new HostError('unavailable', { detail: verdict.unavailable, headers }))
    }
    told.refused()
    denied(ctx, route, verdict.refused, 'audience' in verdict ? verdict.audience : undefined)
    throw by(refuse(services, place, verdict.refused, 'malformed' in verdict))
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
