// How many different texts there were, in a fixed room: exact while they are few, then by the least of their hashes, which
// stand the closer together the more there are (k minimum values; mostly within 5 of 100).

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

/** All bits of a number depend on all of its bits (the last step of MurmurHash3). */
function mix(number: number): number {
  const half = Math.imul(number ^ (number >>> 16), 0x85ebca6b)
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35)
  return (whole ^ (whole >>> 16)) >>> 0
}

/** 48 bits: FNV-1a twice, from two beginnings. A cryptographic hash takes ten times as long, for each line of a log. */
function hashOf(text: string): number {
  let [one, other] = [0x811c9dc5, 0x1b873593]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    one = Math.imul(one ^ code, 0x01000193)
    other = Math.imul(other ^ code, 0x5bd1e995)
  }
  return mix(one) * 2 ** 16 + (mix(other) >>> 16)
}

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
