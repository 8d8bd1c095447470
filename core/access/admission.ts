// Whether a caller may use an item: asked by every method that uses one, answered by the view that lists it, so that
// what is listed and what can be called are one decision.
import { blame } from '../http/describe-thrown.ts'
import type { AccessServices } from '../mcp/access-decider.ts'
import type { Call } from '../mcp/call.ts'
import type { CatalogItem } from '../mcp/catalog.ts'
import { denialOnRoute, refuseAccess } from './access.ts'

/** What throws `unauthorized` or `forbidden` with the challenge, in the body alone where the decider wants that. */
export function createAdmission({ slot, leastScopes }: AccessServices) {
  return function admitCaller(call: Call, item: CatalogItem): void {
    const { route, params } = call.offer
    const access = slot('access', route)
    const denial = denialOnRoute(call.view.denialOf(item), call.user, route, access)
    if (!denial) return
    access.denied?.(call, item, denial)
    const resource = slot('protectedResource', route)
    const refusal = refuseAccess(denial, call.user, {
      route,
      params,
      resource,
      binding: slot('tokenBinding', route),
      leastScopes: leastScopes(route, params),
    })
    const told = access.deniesInBody(route) ? refusal.within200() : refusal
    blame(told, access.by)
    throw told
  }
}
