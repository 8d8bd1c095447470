// Reproducible random numbers from a seed (mulberry32).

export interface SeededRandom {
  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number
}

export function createSeededRandom(seed: number): SeededRandom {
  let state = seed >>> 0
  return {
    below(limit) {
      state = (state + 0x6d2b79f5) >>> 0
      let mixed = Math.imul(state ^ (state >>> 15), state | 1)
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
      return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
    },
  }
}
