// What is served together, by address or by the choice of `configureSession`, and the one check of it. For offer.ts and
// core/assembly.ts.
import { type Report, reporting, StartError, stopAtFirst } from '../http/errors.ts'
import type { Catalog, CatalogItem, Combination } from './catalog.ts'
import type { OfferedConfig } from './offered-config.ts'
import type { CompiledRoute } from './routes.ts'
import { checkKeys, type ShownKeys } from './tool-keys.ts'
import { collect, withResourcesOfKeys } from './view.ts'

export interface CombinationSettings {
  readonly config: OfferedConfig
  readonly catalog: Catalog
  /** The toolsets that plugins contribute to this route. */
  readonly contributed: (route: CompiledRoute) => readonly string[]
  /** The keys of tools that the extensions of this route read. */
  readonly keys: (route: CompiledRoute) => ShownKeys
  /** False where no plugin of this route decides `access`. */
  readonly decidesAccess: (route: CompiledRoute) => boolean
}

/** Throws a StartError for an item whose `access` no plugin of the route decides. */
export function checkAccess(
  { decidesAccess }: Pick<CombinationSettings, 'decidesAccess'>,
  route: CompiledRoute,
  item: CatalogItem | undefined,
): void {
  if (item?.definition.access === undefined || decidesAccess(route)) return
  const { key, definition } = item
  const what = `routes['${route.path}'] serves "${key}", which asks for access "${definition.access}"`
  const why = `${what}, but no plugin of this route decides who has it; switch one on there`
  throw new StartError(why, { of: definition, at: ['access'], also: [{ at: ['routes', route.path] }] })
}

/** What each address of these routes serves together; `names` are the toolsets of the config. */
export const addressCombinations = (
  routes: readonly CompiledRoute[],
  contributed: CombinationSettings['contributed'],
): Array<Combination & { readonly names: readonly string[] }> =>
  routes.flatMap(route =>
    route.knownCombinations().map(names => ({ route, names, toolsets: [...names, ...contributed(route)], extra: [] })),
  )

/**
 * Reports what keeps definitions from being served together: two of one name, a key that no plugin of the route reads,
 * `access` that none decides, two resources of one URI. The one check of startup, `host.tools.add`, plugins, a reload and
 * `configureSession`. True: nothing was reported.
 */
export function checkCombination(
  settings: CombinationSettings,
  combination: Combination,
  report = stopAtFirst,
): boolean {
  const { route } = combination
  let clashes = 0
  const items = collect(settings.catalog, combination, mistake => {
    clashes += 1
    report(mistake)
  })
  if (clashes > 0) return false
  const checked = reporting(report, () => {
    const keys = settings.keys(route)
    checkKeys(items, route.path, keys)
    for (const item of withResourcesOfKeys(items, keys, settings.catalog)) checkAccess(settings, route, item)
    return true
  })
  return checked ?? false
}

/** A toolset that only `addToolset` reaches. */
export interface UnroutedToolset {
  readonly name: string
  readonly route: CompiledRoute
}

/** The toolsets that no route serves, where the config has a `configureSession` to add them. */
const unroutedNames = (routes: readonly CompiledRoute[], { config, catalog }: CombinationSettings): string[] =>
  config.now.configureSession
    ? catalog.names().filter(name => !routes.some(route => route.toolsets.includes(name)))
    : []

const unroutedOn = ({ contributed }: CombinationSettings, route: CompiledRoute, name: string): Combination => ({
  route,
  toolsets: [name, ...contributed(route)],
  extra: [],
})

/** Each of these toolsets on each route that can serve it. */
export function findUnrouted(routes: readonly CompiledRoute[], settings: CombinationSettings): UnroutedToolset[] {
  const canServe = (route: CompiledRoute, name: string) =>
    checkCombination(settings, unroutedOn(settings, route, name), () => undefined)
  return unroutedNames(routes, settings).flatMap(name =>
    routes.filter(route => canServe(route, name)).map(route => ({ name, route })),
  )
}

/** Reports a toolset that no route can serve: `addToolset` would always fail. */
export function checkUnrouted(routes: readonly CompiledRoute[], settings: CombinationSettings, report: Report): void {
  const found = new Set(findUnrouted(routes, settings).map(({ name }) => name))
  const [first] = routes
  for (const name of unroutedNames(routes, settings)) {
    if (first && !found.has(name)) checkCombination(settings, unroutedOn(settings, first, name), report)
  }
}
