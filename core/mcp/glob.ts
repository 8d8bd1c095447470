// Globs for names and URIs, where `*` also matches slashes, unlike in picomatch.

/** True if a text matches a glob. Takes linear time per part. */
export function matchesGlob(glob: string, text: string): boolean {
  const [head = '', ...rest] = glob.split('*')
  const tail = rest.pop()
  if (tail === undefined) return glob === text
  if (!text.startsWith(head)) return false
  let at = head.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return text.length - tail.length >= at && text.endsWith(tail)
}

/** True if some text matches both globs. Used for URI templates, whose variables are unknown. */
export function globsOverlap(one: string, other: string): boolean {
  // reach[j]: some text matches both the read part of `one` and the first j characters of `other`.
  let reach = [true]
  for (const character of other.split('')) reach.push(reach.at(-1) === true && character === '*')
  for (const character of one.split('')) {
    const next = [reach[0] === true && character === '*']
    for (let j = 1; j < reach.length; j += 1) {
      const theirs = other[j - 1]
      const free = character === '*' || theirs === '*'
      next.push(free ? next[j - 1] === true || reach[j] === true : character === theirs && reach[j - 1] === true)
    }
    reach = next
  }
  return reach.at(-1) === true
}
