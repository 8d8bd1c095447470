// Which tools of an index fit a query, the best first: BM25+ over their fields, where what a word is worth depends on how
// few of these tools have it. Nothing but the index has a part in it.
import { nearWords } from './near-words.ts'
import { FIELDS, type Postings, WEIGHTS } from './postings.ts'
import { beginning, exactly, plan } from './vocabulary.ts'

/** Of BM25+: how soon more of a word is worth no more, how much a field's length counts, the least that a word is worth. */
const BM25 = { saturation: 1.2, length: 0.7, least: 0.5 }
/** What a word is worth that only begins so, or is spelt nearly so. */
const WORTH = { begun: 0.375, misspelt: 0.45 }
/** How fast a beginning is worth less the more there is behind it. */
const REST = 0.3
/** Wrong letters for each letter of a word, and the most. */
const WRONG = { each: 0.2, most: 2 }

/** A word of the index that stands for one of the query, and what it is worth. */
type Match = readonly [word: number, worth: number]

/** Mean lengths of the fields. */
function meansOf({ lengths }: Postings): number[] {
  const sums = WEIGHTS.map(() => 0)
  for (const [at, length] of lengths.entries()) sums[at % FIELDS] = (sums[at % FIELDS] ?? 0) + length
  return sums.map(sum => Math.max(1, sum) / Math.max(1, lengths.length / FIELDS))
}

const means = new WeakMap<Postings, readonly number[]>()

interface Sought {
  readonly word: string
  readonly isBegun: boolean
  readonly isMisspelt: boolean
}

function matchesOf(index: Postings, { word, isBegun, isMisspelt }: Sought): Match[] {
  if (isMisspelt) {
    const most = Math.min(WRONG.most, Math.round(word.length * WRONG.each))
    return nearWords(index.words, word, most).map(([at, wrong]) => {
      const { length } = index.words[at] ?? ''
      return [at, (WORTH.misspelt * length) / (length + wrong)]
    })
  }
  const [from, until] = isBegun ? beginning(index, word) : exactly(index, word)
  return Array.from({ length: until - from }, (_, place): Match => {
    const { length } = index.words[from + place] ?? ''
    return [
      from + place,
      length === word.length ? 1 : (WORTH.begun * length) / (length + REST * (length - word.length)),
    ]
  })
}

/** Adds what a word is worth in one field, to the scores of all tools that have it there. */
function addField(index: Postings, [word, worth]: Match, field: number, mean: number, scores: Float64Array): void {
  const { starts, tools, counts, lengths } = index
  const [from, until] = [starts[word] ?? 0, starts[word + 1] ?? 0]
  let having = 0
  for (let at = from; at < until; at += 1) if (counts[at * FIELDS + field]) having += 1
  if (having === 0) return
  const rarity = Math.log(1 + (lengths.length / FIELDS - having + 0.5) / (having + 0.5))
  const { saturation, length: byLength, least } = BM25
  for (let at = from; at < until; at += 1) {
    const count = counts[at * FIELDS + field] ?? 0
    if (count === 0) continue
    const tool = tools[at] ?? 0
    const length = Math.max(1, lengths[tool * FIELDS + field] ?? 1)
    const share = (count * (saturation + 1)) / (count + saturation * (1 - byLength + (byLength * length) / mean))
    scores[tool] = (scores[tool] ?? 0) + worth * (WEIGHTS[field] ?? 1) * rarity * (least + share)
  }
}

/** Places of the tools that fit these words, the best first; of those that fit as well as each other, in the index's order. */
export function rank(index: Postings, words: readonly string[]): number[] {
  const mean = means.get(index) ?? meansOf(index)
  means.set(index, mean)
  const scores = new Float64Array(index.lengths.length / FIELDS)
  // How many words of the query each has, and the last of them.
  const having = new Uint8Array(scores.length)
  const last = new Uint8Array(scores.length)
  const { words: sought, prefixes, misspelt } = plan(index, words)
  for (const [place, word] of sought.entries()) {
    const matches = matchesOf(index, { word, isBegun: prefixes.has(word), isMisspelt: misspelt.has(word) })
    for (const match of matches) {
      for (const [field, ofField] of mean.entries()) addField(index, match, field, ofField, scores)
      for (let at = index.starts[match[0]] ?? 0; at < (index.starts[match[0] + 1] ?? 0); at += 1) {
        const tool = index.tools[at] ?? 0
        if (last[tool] === place + 1) continue
        last[tool] = place + 1
        having[tool] = (having[tool] ?? 0) + 1
      }
    }
  }
  const found: number[] = []
  for (const [tool, score] of scores.entries()) {
    if (score === 0) continue
    scores[tool] = score * (having[tool] ?? 1)
    found.push(tool)
  }
  return found.sort((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0) || one - other)
}
