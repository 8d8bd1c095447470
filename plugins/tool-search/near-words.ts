// Words of a vocabulary that are spelt nearly as one is: a letter more, less or another, at most two of these. Words in order
// share beginnings, so that each beginning is compared once, and those that cannot do are passed over at once.

/** The next of these words, after the one at `at`, that does not begin with `start`. */
function nextAfter(words: readonly string[], at: number, start: string): number {
  let step = 1
  let low = at
  // In steps that double, then back by halves: beginnings of few words are passed in few comparisons.
  while (words[low + step]?.startsWith(start)) {
    low += step
    step *= 2
  }
  let high = Math.min(low + step, words.length)
  while (low + 1 < high) {
    const middle = (low + high) >> 1
    if (words[middle]?.startsWith(start)) low = middle
    else high = middle
  }
  return high
}

/** How many letters they begin with together, at most `most`. */
function sharedBy(one: string, other: string, most: number): number {
  let shared = 0
  while (shared < most && one.charCodeAt(shared) === other.charCodeAt(shared)) shared += 1
  return shared
}

/**
 * The row of Levenshtein's table for `depth` letters, from the one above it; gives the least in it. What is further from the
 * diagonal than `most` is more than that, and stays as it is.
 */
function fillRow(above: Uint8Array, row: Uint8Array, wanted: Wanted, depth: number, letter: number): number {
  const { word, most } = wanted
  const [first, last] = [Math.max(1, depth - most), Math.min(word.length, depth + most)]
  let left = depth - most > 0 ? most + 1 : depth
  let least = left
  row[first - 1] = left
  for (let at = first; at <= last; at += 1) {
    const changed = (above[at - 1] ?? 0) + (word.charCodeAt(at - 1) === letter ? 0 : 1)
    left = Math.min(left + 1, (above[at] ?? 0) + 1, changed)
    row[at] = left
    if (left < least) least = left
  }
  return least
}

/** More than any number of wrong letters. */
const FAR = 255

interface Wanted {
  readonly word: string
  readonly most: number
}

/** Places of words that at most `most` letters are wrong of, and how many are. `words` are in order, none of 250 letters. */
export function nearWords(
  words: readonly string[],
  word: string,
  most: number,
): Array<readonly [at: number, wrong: number]> {
  const found: Array<readonly [number, number]> = []
  const rows = [Uint8Array.from({ length: word.length + 1 }, (_, at) => at)]
  let before = ''
  let filled = 0
  let at = 0
  while (at < words.length) {
    const other = words[at] ?? ''
    let depth = sharedBy(before, other, Math.min(filled, other.length))
    let least = 0
    while (depth < other.length && least <= most) {
      const row = rows[depth + 1] ?? new Uint8Array(word.length + 1).fill(FAR)
      rows[depth + 1] = row
      least = fillRow(rows[depth] ?? row, row, { word, most }, depth + 1, other.charCodeAt(depth))
      depth += 1
    }
    before = other
    filled = depth
    const wrong = rows[depth]?.[word.length] ?? 0
    if (least <= most && wrong <= most) found.push([at, wrong])
    at = least > most ? nextAfter(words, at, other.slice(0, depth)) : at + 1
  }
  return found
}
