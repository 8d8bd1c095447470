// How many different texts there were, in a fixed room: exact while they are few, then by the least of their hashes, which
// stand the closer together the more there are (k minimum values; mostly within 5 of 100).
import { createHash } from 'node:crypto'

/** So many hashes are kept; exact up to here. */
export const EXACT = 2_048

export interface Count {
  readonly count: number
  /** False: about so many. */
  readonly exact: boolean
}

export interface Distinct {
  add(text: string): void
  count(): Count
}

const SPACE = 2 ** 48

const hashOf = (text: string): number => createHash('sha256').update(text).digest().readUIntBE(0, 6)

export function createDistinct(): Distinct {
  let kept = new Set<number>()
  /** Hashes above are passed over. */
  let most = SPACE
  let last: string | undefined

  function prune() {
    const least = [...kept].sort((a, b) => a - b).slice(0, EXACT)
    kept = new Set(least)
    most = least.at(-1) ?? SPACE
  }

  return {
    add(text) {
      if (text === last) return
      last = text
      const hash = hashOf(text)
      if (hash > most) return
      kept.add(hash)
      if (kept.size >= 2 * EXACT) prune()
    },
    count() {
      if (kept.size > EXACT) prune()
      if (most === SPACE) return { count: kept.size, exact: true }
      return { count: Math.round(((EXACT - 1) * SPACE) / most), exact: false }
    },
  }
}
