// Remembers what `configureSession` combined for callers, so that definitions added at run time are checked against it.
// Used by offer.ts. core/assembly.ts passes it to the catalog.
import { LRUCache } from 'lru-cache'
import type { Catalog, CatalogItem, Combination } from './catalog.ts'
import type { OfferedConfig } from './offered-config.ts'

/** Combinations that are remembered, those that were used last. */
const MAX_COMBINATIONS = 1_000

export interface ChosenCombinations {
  /** Those that callers were offered since the last reload. */
  list(): Combination[]
  /** Throws a StartError where a combination cannot be served; remembers it otherwise. */
  check(combination: Combination): void
  /** Remembers a combination that callers are offered. */
  note(combination: Combination): void
}

interface Facts {
  readonly catalog: Pick<Catalog, 'generation'>
  readonly config: Pick<OfferedConfig, 'reloads'>
  /** Throws a StartError where a combination cannot be served. */
  readonly check: (combination: Combination) => void
}

export function createChosenCombinations({ catalog, config, check }: Facts): ChosenCombinations {
  const known = new LRUCache<string, { readonly combination: Combination; checked?: number }>({ max: MAX_COMBINATIONS })
  const ids = new WeakMap<CatalogItem, number>()
  let nextId = 0
  let { reloads } = config

  function idOf(item: CatalogItem): number {
    const id = ids.get(item) ?? nextId++
    ids.set(item, id)
    return id
  }
  function entryOf(combination: Combination) {
    // A reload can make a stored choice invalid.
    if (reloads !== config.reloads) known.clear()
    reloads = config.reloads
    const { route, toolsets, extra } = combination
    const key = JSON.stringify([route.path, toolsets, extra.map(idOf)])
    return { key, entry: known.get(key) ?? { combination } }
  }

  return {
    list: () => (reloads === config.reloads ? [...known.values()].map(({ combination }) => combination) : []),
    check(combination) {
      const { key, entry } = entryOf(combination)
      if (entry.checked !== catalog.generation()) check(combination)
      entry.checked = catalog.generation()
      known.set(key, entry)
    },
    note(combination) {
      const { key, entry } = entryOf(combination)
      known.set(key, entry)
    },
  }
}
