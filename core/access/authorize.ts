// Authorizes callers for routes and items, and builds the `WWW-Authenticate` challenge (MCP basic/authorization).
import { attributeError, attributionOf } from '../http/describe-thrown.ts'
import { HostError } from '../http/errors.ts'
import type { AddChallenge } from '../kernel/authenticators.ts'
import type { HostMiddleware } from '../kernel/endpoint.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { Logger } from '../kernel/log.ts'
import type { AuthorizeRule, Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { AuthorizeCaller, Call } from '../mcp/calls/call.ts'
import type { CatalogItem } from '../mcp/definitions/catalog.ts'
import type {
  AccessDecider,
  AccessServices,
  Audience,
  Denial,
  ProtectedResource,
  TokenBinding,
} from '../mcp/routes/access-decider.ts'
import { hasBoundToken } from './claims.ts'

const OPEN_AUDIENCE: Audience = { key: '', denialOf: () => undefined }

function checkRule(rule: Exclude<AuthorizeRule, true | string>, user: User | undefined): Denial | undefined {
  const scopes = [rule.scope ?? []].flat()
  const lacking = scopes.filter(scope => !user?.scopes.includes(scope))
  const roles = [rule.role ?? []].flat().filter(role => !user?.roles.includes(role))
  if (lacking.length === 0 && roles.length === 0) return undefined
  const what = [...lacking.map(scope => `scope "${scope}"`), ...roles.map(role => `role "${role}"`)].join(', ')
  return { reason: `lacks ${what}`, scopes: lacking.length > 0 ? scopes : [], listed: false }
}

const ANONYMOUS: Denial = { reason: 'no token', scopes: [], listed: false }

/** The default without a policy plugin: items are open, and `authorize` supports scopes and roles. */
export const openAccess: AccessDecider = {
  audienceOf: () => OPEN_AUDIENCE,
  authorize(rule, user) {
    if (rule === true) return user ? undefined : ANONYMOUS
    if (typeof rule !== 'string') return checkRule(rule, user)
    return { reason: `no plugin defines the policy "${rule}"`, scopes: [], listed: false }
  },
  scopesToEnter: rule => (typeof rule === 'object' ? [rule.scope ?? []].flat() : []),
  deniesInBody: () => false,
}

/** Adds the route's scopes to the denial of an item, because the route would refuse a token without them. */
export function denialOnRoute(
  denial: Denial | undefined,
  user: User | undefined,
  route: Route,
  access: AccessDecider,
): Denial | undefined {
  const { authorize } = route
  if (!denial || denial.scopes.length === 0 || !user || authorize === undefined) return denial
  const toEnter = access.scopesToEnter?.(authorize, user, route) ?? []
  return { ...denial, scopes: [...new Set([...toEnter, ...denial.scopes])] }
}

/** Without protected resource metadata, each URL is its own resource. */
export const plainResource: ProtectedResource = {
  resourceOf: (route, params) => route.url(params),
  metadataUrlOf: () => undefined,
  scopesOf: () => undefined,
}

export const noTokenBinding: TokenBinding = { algorithms: () => [], required: () => false, announced: () => false }

interface ChallengeFields {
  /** Set only if a token was presented (RFC 6750 section 3.1, RFC 9449 section 7.1). */
  readonly error?: 'invalid_token' | 'insufficient_scope' | 'invalid_request' | 'invalid_dpop_proof' | 'use_dpop_nonce'
  readonly description?: string
  readonly scopes?: readonly string[] | undefined
  readonly metadataUrl?: string | undefined
  /** If set, the scheme is DPoP, otherwise Bearer. */
  readonly proofAlgorithms?: readonly string[] | undefined
}

/** Formats a quoted string (RFC 9110) and removes characters that it must not contain. */
const quoted = (text: string) => `"${text.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')}"`

export function challenge(facts: ChallengeFields): string {
  const { error, description, scopes = [], metadataUrl, proofAlgorithms = [] } = facts
  const parameters = Object.entries({
    error,
    error_description: description,
    // Not a scope of a resource (MCP basic/authorization, "Refresh Tokens").
    scope: scopes.filter(scope => scope !== 'offline_access').join(' '),
    resource_metadata: metadataUrl,
    algs: proofAlgorithms.join(' '),
  }).flatMap(([name, value]) => (value ? `${name}=${quoted(value)}` : []))
  const scheme = proofAlgorithms.length === 0 ? 'Bearer' : 'DPoP'
  return parameters.length === 0 ? scheme : `${scheme} ${parameters.join(', ')}`
}

export function proofAlgorithmsFor(binding: TokenBinding, isBoundToken: boolean): readonly string[] {
  return isBoundToken || binding.required() ? binding.algorithms() : []
}

type Place = Parameters<AuthorizeCaller>[0]

export const takesBearer = (challenges: ReadonlyArray<string | undefined>): boolean =>
  challenges.length === 0 || challenges.includes(undefined)

/**
 * Builds `WWW-Authenticate` for a 401 (RFC 9110 section 11.6.1): the bearer challenge first, then the challenges of
 * other authenticators.
 */
export function withOtherChallenges(
  bearer: string,
  { route, params }: Pick<Place, 'route' | 'params'>,
  services: AccessServices,
) {
  const announced = services.challengesOn(route)
  const others = [...new Set(announced.filter(one => one !== undefined))]
  const hasBearer = takesBearer(announced)
  const isDescribed = services.slot('protectedResource', route).metadataUrlOf(route, params) !== undefined
  return [...(hasBearer || isDescribed ? [bearer] : []), ...others].join(', ')
}

/** Creates the error: 401 without a token, otherwise 403 with all required scopes. */
export function refuseAccess(denial: Denial, { route, params, user }: Place, services: AccessServices): HostError {
  const metadataUrl = services.slot('protectedResource', route).metadataUrlOf(route, params)
  const { scopes, reason } = denial
  const proofAlgorithms = proofAlgorithmsFor(services.slot('tokenBinding', route), hasBoundToken(user))
  if (!user) {
    const required = scopes.length > 0 ? scopes : services.leastScopes(route, params)
    const header = withOtherChallenges(
      challenge({ scopes: required, metadataUrl, proofAlgorithms }),
      { route, params },
      services,
    )
    return new HostError('unauthorized', { reason, headers: { 'WWW-Authenticate': header } })
  }
  const description = scopes.length > 0 ? `needs ${scopes.join(' ')}` : 'not allowed'
  const header = challenge({ error: 'insufficient_scope', description, scopes, metadataUrl, proofAlgorithms })
  // A challenge without scopes is omitted, because a client that lacks only a role would request tokens in a loop.
  const hasChallenge = scopes.length > 0 && (metadataUrl !== undefined || takesBearer(services.challengesOn(route)))
  const headers = hasChallenge ? { headers: { 'WWW-Authenticate': header } } : {}
  return new HostError('forbidden', { detail: description, reason, ...headers })
}

export const addChallenge =
  (services: AccessServices): AddChallenge =>
  (error, { state: { route, params } }) => {
    const { detail, data, cause, headers, reason = detail ?? 'refused' } = error
    const denial = { reason, scopes: [], listed: false }
    const added = route && refuseAccess(denial, { route, params, user: undefined }, services).headers
    const complete = new HostError('unauthorized', { detail, headers: { ...headers, ...added }, reason, data, cause })
    const { plugin } = attributionOf(error)
    if (plugin !== undefined) attributeError(complete, plugin)
    return complete
  }

/** Throws `unauthorized` or `forbidden` if the caller cannot use an item. Lists and calls share this check. */
export function createItemAuthorizer(services: AccessServices) {
  return function authorizeItem(call: Call, item: CatalogItem): void {
    const { user, offer } = call
    const { route, params } = offer
    const access = services.slot('access', route)
    const denial = denialOnRoute(call.view.denialOf(item), user, route, access)
    if (!denial) return
    access.denied?.(call, item, denial)
    const refusal = refuseAccess(denial, { route, params, user }, services)
    const thrown = access.deniesInBody(route) ? refusal.withStatus200() : refusal
    attributeError(thrown, access.by)
    throw thrown
  }
}

/** Throws `unauthorized` without a user, and `forbidden` if the user does not satisfy the route's rule. */
export function createRouteAuthorizer(log: Logger, services: AccessServices): AuthorizeCaller {
  return place => {
    const { route, user } = place
    if (route.authorize === undefined) return
    const access = services.slot('access', route)
    const denial = access.authorize(route.authorize, user, route)
    if (!denial) return
    const { issuer, subject } = user ?? {}
    const { reason, scopes } = denial
    const by = access.by ?? 'mcp-host'
    log.info(
      { code: 'MH1223', denied: 'route', by, route: route.path, issuer, subject, reason, scopes },
      'denied a route',
    )
    const refusal = refuseAccess(denial, place, services)
    attributeError(refusal, access.by)
    throw refusal
  }
}

/** Returns the services of a plugin's host, which are not part of the published type. */
export const servicesOf = <Services = AccessServices>(host: Pick<KernelHost, 'log'>): Services =>
  (host as Pick<KernelHost, 'log'> & { readonly services: Services }).services

/** Middleware for `host.authorize`: applies the `authorize` of the route. */
export const authorizeRoute = (host: Pick<KernelHost, 'log'>): HostMiddleware =>
  function authorizeCaller(ctx, next) {
    const { route, user, params } = ctx.state
    if (route?.authorize !== undefined)
      servicesOf<{ authorize: AuthorizeCaller }>(host).authorize({ route, user, params })
    return next()
  }
