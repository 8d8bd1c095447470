// A route as the start-up page shows it.

import type { Revision } from './revisions.ts'
import { type CompiledRoute, sampleUrl } from './routes.ts'

/** One line of the start-up page. */
export interface RouteSummary {
  readonly path: string
  /** One of its addresses as clients reach it; a parameter that it needs has the name of a toolset. */
  readonly url: string
  readonly toolsets: readonly string[]
  readonly revisions: readonly Revision[]
  readonly stateless: boolean
  /** Who may call, in words. */
  readonly callers: string
}

function describeCallers({ authorize }: CompiledRoute): string {
  if (authorize === undefined) return 'anyone'
  if (authorize === true) return 'any signed-in user'
  return typeof authorize === 'string' ? `policy "${authorize}"` : `needs ${JSON.stringify(authorize)}`
}

export const summarizeRoute = (route: CompiledRoute): RouteSummary => ({
  path: route.path,
  url: sampleUrl(route),
  toolsets: route.toolsets,
  revisions: route.revisions,
  stateless: route.stateless,
  callers: describeCallers(route),
})
