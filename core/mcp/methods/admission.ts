// Whether a caller may use an item: asked by every method that uses one, answered by the view that lists it, so that
// what is listed and what can be called are one decision.
import { denialOnRoute, refuseAccess } from '../../access/access.ts'
import type { Call } from '../call.ts'
import type { CatalogItem } from '../catalog.ts'
import type { HandlerSettings } from '../context.ts'

/** Throws `unauthorized` or `forbidden` with the challenge, in the body alone where the decider wants that. */
export function admitCaller(call: Call, item: CatalogItem, { access, resource, leastScopes }: HandlerSettings): void {
  const { route, params } = call.session
  const denial = denialOnRoute(call.view.denialOf(item), call.user, route, access())
  if (!denial) return
  access().denied?.(call, item, denial)
  const place = { route, params, resource: resource(), leastScopes: leastScopes(route, params) }
  const refusal = refuseAccess(denial, call.user, place)
  throw access().deniesInBody(route) ? refusal.within200() : refusal
}
