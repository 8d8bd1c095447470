// What an index holds: of each word the tools that have it, and how often in which field, in arrays of numbers. And the same
// for a part of the tools, which is in no way different from what would be made of these alone.
import type { Vocabulary } from './vocabulary.ts'

/** Fields, and how much a word counts where it stands. */
export const WEIGHTS = [6, 4, 2, 1] as const
export const FIELDS = WEIGHTS.length

/** The most that is counted of one word in one field. */
const MOST = 255

/** Tools have places, from 0 on. What is of fields has as many numbers for each. */
export interface Postings extends Vocabulary {
  /** The tools of each word, from its `starts` on. */
  readonly tools: Uint32Array
  /** How often it stands in each of their fields. */
  readonly counts: Uint8Array
  /** Words of each tool's fields, each once. */
  readonly lengths: Uint16Array
}

/** Takes tools one after another. */
export class PostingsWriter {
  readonly #known = new Map<string, { readonly tools: number[]; readonly counts: number[] }>()
  readonly #lengths: number[] = []
  #occurrences = 0

  /** The words of the next tool's fields. */
  add(fields: ReadonlyArray<readonly string[]>): void {
    const tool = this.#lengths.length / FIELDS
    const own = new Map<string, number[]>()
    for (const [field, words] of fields.entries()) {
      for (const word of words) {
        const counts = own.get(word) ?? WEIGHTS.map(() => 0)
        counts[field] = Math.min(MOST, (counts[field] ?? 0) + 1)
        own.set(word, counts)
      }
      this.#lengths.push(new Set(words).size)
    }
    for (const [word, counts] of own) {
      const known = this.#known.get(word) ?? { tools: [], counts: [] }
      known.tools.push(tool)
      known.counts.push(...counts)
      this.#known.set(word, known)
    }
    this.#occurrences += own.size
  }

  /** All are added. */
  close(): Postings {
    const words = [...this.#known.keys()].sort()
    const starts = new Uint32Array(words.length + 1)
    const tools = new Uint32Array(this.#occurrences)
    const counts = new Uint8Array(this.#occurrences * FIELDS)
    let end = 0
    for (const [at, word] of words.entries()) {
      const known = this.#known.get(word)
      tools.set(known?.tools ?? [], end)
      counts.set(known?.counts ?? [], end * FIELDS)
      end += known?.tools.length ?? 0
      starts[at + 1] = end
    }
    return { words, starts, tools, counts, lengths: Uint16Array.from(this.#lengths) }
  }
}

/** For each tool its place among those that are kept, from 1 on; 0: it is left out. */
function numberKept(kept: Uint8Array): Uint32Array {
  let number = 0
  return Uint32Array.from(kept, isKept => {
    if (isKept) number += 1
    return isKept ? number : 0
  })
}

/** Of these tools alone, those with a 1. */
export function restrict({ words, starts, tools, counts, lengths }: Postings, kept: Uint8Array): Postings {
  const numbers = numberKept(kept)
  const own: string[] = []
  const ownStarts = [0]
  const ownTools: number[] = []
  const from: number[] = []
  for (let word = 0; word < words.length; word += 1) {
    const before = ownTools.length
    for (let at = starts[word] ?? 0; at < (starts[word + 1] ?? 0); at += 1) {
      const number = numbers[tools[at] ?? 0] ?? 0
      if (number === 0) continue
      ownTools.push(number - 1)
      from.push(at)
    }
    if (ownTools.length === before) continue
    own.push(words[word] ?? '')
    ownStarts.push(ownTools.length)
  }
  const ownCounts = new Uint8Array(from.length * FIELDS)
  for (const [to, at] of from.entries()) {
    for (let field = 0; field < FIELDS; field += 1) ownCounts[to * FIELDS + field] = counts[at * FIELDS + field] ?? 0
  }
  return {
    words: own,
    starts: Uint32Array.from(ownStarts),
    tools: Uint32Array.from(ownTools),
    counts: ownCounts,
    lengths: lengths.filter((_, at) => kept[Math.floor(at / FIELDS)] === 1),
  }
}

/** Bytes of a word beside its letters. */
const BYTES_PER_WORD = 40

/** About what it takes in memory. */
export const bytesOf = ({ words, starts, tools, counts, lengths }: Postings): number =>
  words.length * BYTES_PER_WORD + starts.byteLength + tools.byteLength + counts.byteLength + lengths.byteLength
