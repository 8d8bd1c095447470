// Stands in for a text that logs and metrics must not have, such as a user's name or a session's id: the same for the same
// text, on every node with the same secrets, and without them nobody finds the text by trying.
import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type UserName, userKey } from '../kernel/user.ts'

/** Texts whose stand-in is known; most calls are of few users. */
const MAX_KNOWN = 10_000
/** Characters of one that is kept; longer ones are computed each time. */
const MAX_KEPT = 512

/** 16 hexadecimal digits for what a text names: a user and a session of one text have others. */
export interface Disguise {
  user(user: UserName): string
  session(id: string): string
}

/** `keys` as of `Secrets`, of which the first counts. */
export function createDisguise([key]: readonly Buffer[]): Disguise {
  if (!key) throw new Error('no key to disguise with')
  const known = new LRUCache<string, string>({ max: MAX_KNOWN })
  /** Of users that their plugin gives again and again, as one that remembers tokens does. */
  const ofUsers = new WeakMap<UserName, string>()

  function standIn(what: 'user' | 'session', text: string): string {
    const named = `${what} ${text}`
    const found =
      known.get(named) ??
      createHmac('sha256', key as Buffer)
        .update(named)
        .digest('hex')
        .slice(0, 16)
    if (named.length <= MAX_KEPT) known.set(named, found)
    return found
  }

  return {
    user(user) {
      const found = ofUsers.get(user) ?? standIn('user', userKey(user))
      ofUsers.set(user, found)
      return found
    },
    session: id => standIn('session', id),
  }
}
