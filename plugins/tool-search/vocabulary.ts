// The words of a set of tools in order, how often each occurs, and what a query may cost by that: the rare ones are looked
// for first, and what nearly every tool has is left out where there are thousands.

/** Occurrences that one query may go through: all of its words, and those that begin with them. */
const BUDGET = 6_000
/** Shortest word that others may begin with, and that may be misspelt. */
const SHORTEST = { prefix: 3, fuzzy: 5 }
/** Words of a query that may be misspelt: each is looked for through the whole vocabulary. */
const MAX_MISSPELT = 3
/** After everything that begins with what stands before it. */
const LAST = '\uffff'

/** Words in order, each once. */
export interface Vocabulary {
  readonly words: readonly string[]
  /** Before each word, and after the last, how many occurrences those before it have: one for each tool that has a word. */
  readonly starts: Uint32Array
}

/** What is looked for, word by word. */
export interface Plan {
  readonly words: readonly string[]
  /** Of these also what begins with them. */
  readonly prefixes: ReadonlySet<string>
  /** Words that no tool has: what is spelt nearly so. */
  readonly misspelt: ReadonlySet<string>
}

/** Places from the first on until before the second. */
export type Range = readonly [from: number, until: number]

/** The place of the first that is not less. */
function placeOf(words: readonly string[], word: string): number {
  let [low, high] = [0, words.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((words[middle] ?? '') < word) low = middle + 1
    else high = middle
  }
  return low
}

/** Words that begin so, the word itself included. */
export const beginning = ({ words }: Vocabulary, word: string): Range => [
  placeOf(words, word),
  placeOf(words, `${word}${LAST}`),
]

/** The word itself, where there is it. */
export function exactly({ words }: Vocabulary, word: string): Range {
  const at = placeOf(words, word)
  return [at, words[at] === word ? at + 1 : at]
}

/** How often these occur. */
const countOf = ({ starts }: Vocabulary, [from, until]: Range): number => (starts[until] ?? 0) - (starts[from] ?? 0)

/** What is looked for of these words; the rarest is always among it. */
export function plan(vocabulary: Vocabulary, words: readonly string[]): Plan {
  const prefixes = new Set<string>()
  const misspelt = new Set<string>()
  const chosen: string[] = []
  let spent = 0
  const known = words.map(word => ({
    word,
    own: countOf(vocabulary, exactly(vocabulary, word)),
    all: countOf(vocabulary, beginning(vocabulary, word)),
  }))
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
