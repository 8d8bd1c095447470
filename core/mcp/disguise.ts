// Stands in for a text that logs and metrics must not have, such as a user's name or a session's id: the same for the same
// text, on every node with the same secrets, and without them nobody finds the text by trying.
import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Texts whose stand-in is known; most calls are of few users. */
const MAX_KNOWN = 10_000
/** Characters of one that is kept; longer ones are computed each time. */
const MAX_KEPT = 512

/** 16 hexadecimal digits for what a text names: a user and a session of one text have others. */
export type Disguise = (what: 'user' | 'session', text: string) => string

/** `keys` as of `Secrets`, of which the first counts. */
export function createDisguise([key]: readonly Buffer[]): Disguise {
  if (!key) throw new Error('no key to disguise with')
  const known = new LRUCache<string, string>({ max: MAX_KNOWN })
  return (what, text) => {
    const named = `${what} ${text}`
    const found = known.get(named) ?? createHmac('sha256', key).update(named).digest('hex').slice(0, 16)
    if (named.length <= MAX_KEPT) known.set(named, found)
    return found
  }
}
