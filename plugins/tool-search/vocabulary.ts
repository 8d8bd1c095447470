// How often words occur in a set of tools, and what a query may cost by that: the rare ones are looked for first, and what
// nearly every tool has is left out where there are thousands.

/** Occurrences that one query may go through: all of its words, and those that begin with them. */
const BUDGET = 6_000
/** Shortest word that others may begin with, and that may be misspelt. */
const SHORTEST = { prefix: 3, fuzzy: 5 }
/** Words of a query that may be misspelt: each is looked for through the whole vocabulary. */
const MAX_MISSPELT = 3

/** What is looked for, word by word. */
export interface Plan {
  readonly words: readonly string[]
  /** Of these also what begins with them. */
  readonly prefixes: ReadonlySet<string>
  /** Words that no tool has: what is spelt nearly so. */
  readonly misspelt: ReadonlySet<string>
}

export class Vocabulary {
  readonly #counts = new Map<string, number>()
  /** In order, and before each how often all of those before it occur; made once all are counted. */
  #sorted: readonly string[] = []
  #before: readonly number[] = []

  /** Counts the words of one tool. */
  count(words: Iterable<string>): void {
    for (const word of new Set(words)) this.#counts.set(word, (this.#counts.get(word) ?? 0) + 1)
  }

  /** All are counted. */
  close(): void {
    this.#sorted = [...this.#counts.keys()].sort()
    let sum = 0
    const before = this.#sorted.map(word => {
      const here = sum
      sum += this.#counts.get(word) ?? 0
      return here
    })
    this.#before = [...before, sum]
  }

  /** The place of the first that is not less. */
  #placeOf(word: string): number {
    let [low, high] = [0, this.#sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#sorted[middle] ?? '') < word) low = middle + 1
      else high = middle
    }
    return low
  }

  /** How often words occur that begin so, the word itself included. */
  #beginning(word: string): number {
    const [from, until] = [this.#placeOf(word), this.#placeOf(`${word}\uffff`)]
    return (this.#before[until] ?? 0) - (this.#before[from] ?? 0)
  }

  /** What is looked for of these words; the rarest is always among it. */
  plan(words: readonly string[]): Plan {
    const prefixes = new Set<string>()
    const misspelt = new Set<string>()
    const chosen: string[] = []
    let spent = 0
    const known = words.map(word => ({ word, own: this.#counts.get(word) ?? 0, all: this.#beginning(word) }))
    for (const { word, own, all } of known.sort((one, other) => one.own - other.own)) {
      // Where nothing else is looked for, what it costs is the price of an answer.
      const isAffordable = spent + all <= BUDGET || (own === 0 && chosen.length === 0)
      const isBegun = word.length >= SHORTEST.prefix && all > own && isAffordable
      const isMisspelt = all === 0 && word.length >= SHORTEST.fuzzy && misspelt.size < MAX_MISSPELT
      if (own === 0 && !isBegun && !isMisspelt) continue
      if (own > 0 && spent > 0 && spent + own > BUDGET) break
      chosen.push(word)
      if (isBegun) prefixes.add(word)
      if (isMisspelt) misspelt.add(word)
      spent += isBegun ? all : own
    }
    return { words: chosen, prefixes, misspelt }
  }
}
