// Pseudonyms of users and sessions for logs and metrics: the same on every node with the same secrets.
import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { lruLimit } from '../http/lru-limit.ts'
import { type UserName, userKey } from './user.ts'

const MAX_KNOWN = 10_000
const MAX_KEPT = 512

/** Pseudonyms of 16 hexadecimal digits. A user and a session with the same name have different ones. */
export type Pseudonyms = ReturnType<typeof createPseudonyms>

export function createPseudonyms([key]: readonly Buffer[]) {
  if (!key) throw new Error('no key for pseudonyms')
  const known = new LRUCache<string, string>(lruLimit(MAX_KNOWN))
  const ofUsers = new WeakMap<UserName, string>()

  function pseudonymOf(what: 'user' | 'session', text: string): string {
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
    user(user: UserName) {
      const found = ofUsers.get(user) ?? pseudonymOf('user', userKey(user))
      ofUsers.set(user, found)
      return found
    },
    session: (id: string) => pseudonymOf('session', id),
  }
}
