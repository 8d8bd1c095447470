// What is counted by name, in a fixed room: a log may have any number of names, and the most frequent of them are asked for.

export interface Ranking<Entry> {
  /** Counts `weight` more of it, and returns what is kept of it. */
  count(key: string, weight: number): Entry
  /** Most frequent first. */
  list(): ReadonlyArray<Ranked<Entry>>
  /** Counts of those that were forgotten: there were too many, and they were rare. */
  readonly forgotten: number
}

export interface Ranked<Entry> {
  readonly key: string
  readonly count: number
  readonly entry: Entry
}

/** Keeps `most` at least, and twice as many at most. A name that was forgotten and comes again begins anew. */
export function createRanking<Entry>(most: number, begin: () => Entry): Ranking<Entry> {
  let kept = new Map<string, { readonly key: string; count: number; readonly entry: Entry }>()
  let forgotten = 0

  const sorted = () => [...kept.values()].sort((a, b) => b.count - a.count)

  function prune() {
    const all = sorted()
    for (const { count } of all.slice(most)) forgotten += count
    kept = new Map(all.slice(0, most).map(one => [one.key, one]))
  }

  return {
    count(key, weight) {
      const known = kept.get(key)
      if (known) {
        known.count += weight
        return known.entry
      }
      if (kept.size >= 2 * most) prune()
      const entry = begin()
      kept.set(key, { key, count: weight, entry })
      return entry
    },
    list: sorted,
    get forgotten() {
      return forgotten
    },
  }
}
