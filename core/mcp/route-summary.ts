// A route as the start-up page shows it.

import type { CatalogItem } from './catalog.ts'
import { type ExampleCall, findExampleCall } from './example-call.ts'
import type { Revision } from './revisions.ts'
import { type CompiledRoute, samplePath, sampleUrl } from './routes.ts'

/** One line of the start-up page. */
export interface RouteSummary {
  readonly path: string
  /** One of its addresses as clients reach it; a parameter that it needs has the name of a toolset. */
  readonly url: string
  /** The path of that address. */
  readonly samplePath: string
  readonly toolsets: readonly string[]
  readonly revisions: readonly Revision[]
  readonly stateless: boolean
  /** Who may call, in words. */
  readonly callers: string
  /** Whether anybody comes in; single tools may ask for a token all the same. */
  readonly open: boolean
  /** Whether clients are told where to log in. */
  readonly tellsLogin: boolean
  /** Absent where no tool has arguments that are easily made. */
  readonly example?: ExampleCall
}

/** What others know of a route. */
export interface RouteFacts {
  /** What a caller may use there, as far as that can be known. */
  readonly items: readonly CatalogItem[]
  readonly tellsLogin: boolean
}

function describeCallers({ authorize }: CompiledRoute): string {
  if (authorize === undefined) return 'anyone'
  if (authorize === true) return 'any signed-in user'
  return typeof authorize === 'string' ? `policy "${authorize}"` : `needs ${JSON.stringify(authorize)}`
}

export function summarizeRoute(route: CompiledRoute, { items, tellsLogin }: RouteFacts): RouteSummary {
  const example = findExampleCall(items)
  return {
    path: route.path,
    url: sampleUrl(route),
    samplePath: samplePath(route),
    toolsets: route.toolsets,
    revisions: route.revisions,
    stateless: route.stateless,
    callers: describeCallers(route),
    open: route.authorize === undefined,
    tellsLogin,
    ...(example && { example }),
  }
}
