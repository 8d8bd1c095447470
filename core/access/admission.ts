// Whether a caller may use an item: asked by every method that uses one, answered by the view that lists it, so that
// what is listed and what can be called are one decision.
import type { AccessDecider, ProtectedResource } from '../mcp/access-decider.ts'
import type { Call } from '../mcp/call.ts'
import type { CatalogItem } from '../mcp/catalog.ts'
import { denialOnRoute, refuseAccess } from './access.ts'
import type { LeastScopes } from './least-scopes.ts'

export interface AdmissionParts {
  /** Asked for late, because plugins may fill the slots. */
  readonly access: () => AccessDecider
  readonly resource: () => ProtectedResource
  readonly leastScopes: LeastScopes
}

/** Throws `unauthorized` or `forbidden` with the challenge, in the body alone where the decider wants that. */
export function createAdmission({ access, resource, leastScopes }: AdmissionParts) {
  return function admitCaller(call: Call, item: CatalogItem): void {
    const { route, params } = call.session
    const denial = denialOnRoute(call.view.denialOf(item), call.user, route, access())
    if (!denial) return
    access().denied?.(call, item, denial)
    const place = { route, params, resource: resource(), leastScopes: leastScopes(route, params) }
    const refusal = refuseAccess(denial, call.user, place)
    throw access().deniesInBody(route) ? refusal.within200() : refusal
  }
}
