// Stands in for a text that logs and metrics must not have, such as a user's name or a session's id: the same for the same
// text, on every node with the same secrets, and without them nobody finds the text by trying.
import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Texts whose stand-in is known; most calls are of few users. */
const MAX_KNOWN = 10_000

/** 16 hexadecimal digits for a text; `keys` as of `Secrets`, of which the first counts. */
export function createDisguise([key]: readonly Buffer[]): (text: string) => string {
  if (!key) throw new Error('no key to disguise with')
  const known = new LRUCache<string, string>({ max: MAX_KNOWN })
  return text => {
    const found = known.get(text) ?? createHmac('sha256', key).update(text).digest('hex').slice(0, 16)
    known.set(text, found)
    return found
  }
}
