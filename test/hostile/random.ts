// Random choices of attacks, reproducible from the seed, the kind of attack and the round number.
import { createSeededRandom } from '../support/seeded-random.ts'

export interface Chance {
  /** A whole number from 0 on, less than `limit`. */
  below(limit: number): number
  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number
  oneIn(count: number): boolean
  pick<T>(list: readonly T[]): T
}

/** FNV-1a: near names must not give near seeds. */
function digest(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

export function createChance(seed: number, name: string): Chance {
  const random = createSeededRandom(digest(`${seed} ${name}`))
  const below = (limit: number) => random.below(limit)
  return {
    below,
    between: (least, most) => least + below(most - least + 1),
    oneIn: count => below(count) === 0,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new Error('there is nothing to pick from')
      return list[below(list.length)] as T
    },
  }
}
