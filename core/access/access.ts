// Who may use what: the one decision that lists, calls, reads, gets, completions and subscriptions share, and the
// challenge that tells a client what it lacks (2026-07-28 basic/authorization, "Error Handling").

import { HostError } from '../http/errors.ts'
import type { AuthorizeRule, Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { AccessDecider, Audience, Denial, ProtectedResource, TokenBinding } from '../mcp/access-decider.ts'
import { boundKey } from './possession.ts'

const EVERYBODY: Audience = { key: '', denialOf: () => undefined }

const list = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === 'string' ? [value] : value

/** A rule of scopes and roles alone: all of them must be there. Undefined: they are. */
export function meetsRule(rule: Exclude<AuthorizeRule, true | string>, user: User | undefined): Denial | undefined {
  const scopes = list(rule.scope)
  const lacking = scopes.filter(scope => !user?.scopes.includes(scope))
  const roles = list(rule.role).filter(role => !user?.roles.includes(role))
  if (lacking.length === 0 && roles.length === 0) return undefined
  const what = [...lacking.map(scope => `scope "${scope}"`), ...roles.map(role => `role "${role}"`)].join(', ')
  return { reason: `lacks ${what}`, scopes: lacking.length > 0 ? scopes : [], listed: false }
}

const ANONYMOUS: Denial = { reason: 'no token', scopes: [], listed: false }

/** Without a policy plugin: every item is open, and `authorize` knows scopes and roles. */
export const openAccess: AccessDecider = {
  audienceOf: () => EVERYBODY,
  authorize(rule, user) {
    if (rule === true) return user ? undefined : ANONYMOUS
    if (typeof rule !== 'string') return meetsRule(rule, user)
    return { reason: `no plugin knows the policy "${rule}"`, scopes: [], listed: false }
  },
  scopesToEnter: rule => (typeof rule === 'object' ? list(rule.scope) : []),
  deniesInBody: () => false,
}

/**
 * Why a caller of a route may not use an item. Its scopes are those of the route first, then the item's: a client that
 * asks for the latter alone gets a token that the route itself refuses.
 */
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

/** Without metadata each address is its own resource. */
export const plainResource: ProtectedResource = {
  resourceOf: (route, params) => route.url(params),
  metadataUrlOf: () => undefined,
  scopesOf: () => undefined,
}

/** Where nobody checks proofs of possession. */
export const noTokenBinding: TokenBinding = { algorithms: () => [], required: () => false, announced: () => false }

export interface ChallengeFacts {
  /** RFC 6750 section 3.1 and RFC 9449 section 7.1; only where a token was presented. */
  readonly error?: 'invalid_token' | 'insufficient_scope' | 'invalid_request' | 'invalid_dpop_proof' | 'use_dpop_nonce'
  readonly description?: string
  readonly scopes?: readonly string[] | undefined
  readonly metadataUrl?: string | undefined
  /** Of proofs, where the scheme is DPoP; empty: it is Bearer. */
  readonly proofAlgorithms?: readonly string[] | undefined
}

/** A quoted string of RFC 9110: what cannot be in one is left out. */
const quoted = (text: string) => `"${text.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')}"`

/** The value of `WWW-Authenticate`. */
export function challenge(facts: ChallengeFacts): string {
  const { error, description, scopes = [], metadataUrl, proofAlgorithms = [] } = facts
  const parameters = [
    ...(error === undefined ? [] : [`error=${quoted(error)}`]),
    ...(description === undefined ? [] : [`error_description=${quoted(description)}`]),
    ...(scopes.length === 0 ? [] : [`scope=${quoted(scopes.join(' '))}`]),
    ...(metadataUrl === undefined ? [] : [`resource_metadata=${quoted(metadataUrl)}`]),
    ...(proofAlgorithms.length === 0 ? [] : [`algs=${quoted(proofAlgorithms.join(' '))}`]),
  ]
  const scheme = proofAlgorithms.length === 0 ? 'Bearer' : 'DPoP'
  return parameters.length === 0 ? scheme : `${scheme} ${parameters.join(', ')}`
}

/** Of a challenge's proofs: where only bound tokens are taken, and for who showed one. Empty: it is for a bearer token. */
export function proofAlgorithmsFor(binding: TokenBinding, showedBound: boolean): readonly string[] {
  return showedBound || binding.required() ? binding.algorithms() : []
}

/** Where a refusal happened, for its challenge. */
export interface Place {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  readonly resource: ProtectedResource
  readonly binding: TokenBinding
  /** What a caller without a token is told to ask for where the denial names no scope. */
  readonly leastScopes?: readonly string[]
}

/**
 * What a caller without the right is told: 401 where it showed no token, 403 with every scope that this needs where it
 * did.
 */
export function refuseAccess(denial: Denial, user: User | undefined, place: Place): HostError {
  const { route, params, resource, binding, leastScopes } = place
  const metadataUrl = resource.metadataUrlOf(route, params)
  const { scopes, reason } = denial
  const showedBound = user !== undefined && typeof boundKey(user.claims) === 'string'
  const proofAlgorithms = proofAlgorithmsFor(binding, showedBound)
  if (!user) {
    const header = challenge({ scopes: scopes.length > 0 ? scopes : leastScopes, metadataUrl, proofAlgorithms })
    return new HostError('unauthorized', { reason, headers: { 'WWW-Authenticate': header } })
  }
  const description = scopes.length > 0 ? `needs ${scopes.join(' ')}` : 'not allowed'
  const header = challenge({ error: 'insufficient_scope', description, scopes, metadataUrl, proofAlgorithms })
  // Scopes cannot help everybody: a client that lacks a role must not be sent for another token again and again.
  const headers = scopes.length > 0 ? { headers: { 'WWW-Authenticate': header } } : {}
  return new HostError('forbidden', { detail: description, reason, ...headers })
}
