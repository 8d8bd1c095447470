// Combinations of toolsets that are served together, by URL or `configureSession`, and their validation.
import { LRUCache } from 'lru-cache'
import { type Report, StartError, stopAtFirst, tryReport } from '../../http/errors.ts'
import { lruLimit } from '../../http/lru-limit.ts'
import type { Catalog, CatalogItem, Combination } from '../definitions/catalog.ts'
import { checkKeys, type ListedKeys } from '../definitions/tool-keys.ts'
import type { LiveConfig } from './configure-session.ts'
import type { CompiledRoute } from './routes.ts'
import { collect, withResourcesOfKeys } from './view.ts'

export interface CombinationSettings {
  readonly config: LiveConfig
  readonly catalog: Catalog
  readonly contributed: (route: CompiledRoute) => readonly string[]
  readonly keys: (route: CompiledRoute) => ListedKeys
  readonly decidesAccess: (route: CompiledRoute) => boolean
  readonly keyChecks: Parameters<typeof checkKeys>[3]
}

export function checkAccess(
  { decidesAccess }: Pick<CombinationSettings, 'decidesAccess'>,
  route: CompiledRoute,
  item: CatalogItem | undefined,
): void {
  if (item?.definition.access === undefined || decidesAccess(route)) return
  const { key, definition } = item
  const what = `routes['${route.path}'] serves "${key}", which requires access "${definition.access}"`
  const why = `${what}, but no plugin of this route enforces access; enable one there`
  throw new StartError('MH1110', why, { of: definition, at: ['access'], also: [{ at: ['routes', route.path] }] })
}

export const addressCombinations = (
  routes: readonly CompiledRoute[],
  contributed: CombinationSettings['contributed'],
): Array<Combination & { readonly names: readonly string[] }> =>
  routes.flatMap(route =>
    route.knownCombinations().map(names => ({ route, names, toolsets: [...names, ...contributed(route)], extra: [] })),
  )

export function checkCombination(
  settings: CombinationSettings,
  combination: Combination,
  report = stopAtFirst,
): boolean {
  const { route } = combination
  let hasClash = false
  const items = collect(settings.catalog, combination, clash => {
    hasClash = true
    report(clash)
  })
  if (hasClash) return false
  const checked = tryReport(report, () => {
    const keys = settings.keys(route)
    checkKeys(items, route.path, keys, settings.keyChecks)
    for (const item of withResourcesOfKeys(items, keys, settings.catalog)) checkAccess(settings, route, item)
    return true
  })
  return checked ?? false
}

function unrouted(routes: readonly CompiledRoute[], settings: CombinationSettings) {
  const { config, catalog, contributed } = settings
  if (!config.now.configureSession) return []
  const names = catalog.names().filter(name => !routes.some(route => route.toolsets.includes(name)))
  return names.map(name => ({
    name,
    on: routes.map(route => {
      const combination = { route, toolsets: [name, ...contributed(route)], extra: [] }
      return { combination, isServable: checkCombination(settings, combination, () => undefined) }
    }),
  }))
}

export const findUnrouted = (routes: readonly CompiledRoute[], settings: CombinationSettings) =>
  unrouted(routes, settings).flatMap(({ name, on }) =>
    on.filter(({ isServable }) => isServable).map(({ combination: { route } }) => ({ name, route })),
  )

export function checkUnrouted(routes: readonly CompiledRoute[], settings: CombinationSettings, report: Report): void {
  for (const { on } of unrouted(routes, settings)) {
    const [first] = on
    if (first && !on.some(({ isServable }) => isServable)) checkCombination(settings, first.combination, report)
  }
}

const MAX_CHOSEN = 1_000

export type ChosenCombinations = ReturnType<typeof createChosenCombinations>

export function createChosenCombinations(settings: CombinationSettings) {
  const { catalog, config } = settings
  const known = new LRUCache<string, { readonly combination: Combination; checked?: number }>(lruLimit(MAX_CHOSEN))
  const ids = new WeakMap<CatalogItem, number>()
  let nextId = 0
  let { reloads } = config

  function entryOf(combination: Combination) {
    // A reload can invalidate a stored choice.
    if (reloads !== config.reloads) known.clear()
    reloads = config.reloads
    const { route, toolsets, extra } = combination
    for (const item of extra) if (!ids.has(item)) ids.set(item, nextId++)
    const key = JSON.stringify([route.path, toolsets, extra.map(item => ids.get(item))])
    const entry = known.get(key) ?? { combination }
    return { entry, keep: () => void known.set(key, entry) }
  }

  return {
    list: () => (reloads === config.reloads ? [...known.values()].map(({ combination }) => combination) : []),
    check(combination: Combination) {
      const { entry, keep } = entryOf(combination)
      if (entry.checked !== catalog.generation()) checkCombination(settings, combination)
      entry.checked = catalog.generation()
      keep()
    },
    note: (combination: Combination) => entryOf(combination).keep(),
  }
}
