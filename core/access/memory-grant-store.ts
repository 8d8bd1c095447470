// The default of the slot `grantStore`: in this process, gone with it, and bounded.
import { LRUCache } from 'lru-cache'
import { GRANT_KINDS, type GrantStore } from './grant-store.ts'

/** Bytes of keys and values, for each kind. */
const MOST = { pending: 32 * 1_048_576, granted: 128 * 1_048_576 }
/** What an entry costs beside its texts, bytes. */
const OVERHEAD = 300

type Value = string | Map<string, number>

const sizeOf = (value: Value, key: string): number => {
  const texts =
    typeof value === 'string' ? value.length : [...value.keys()].reduce((sum, one) => sum + one.length + 60, 0)
  return OVERHEAD + key.length + texts
}

/** `most`: bytes for each kind; for tests, as is `now`. */
export function createMemoryGrantStore(most = MOST, now: () => number = Date.now): GrantStore {
  const create = (maxSize: number) => new LRUCache<string, Value>({ maxSize, sizeCalculation: sizeOf, perf: { now } })
  const pending = create(most.pending)
  const granted = create(most.granted)
  const of = (key: string) => (key.startsWith(GRANT_KINDS.pending) ? pending : granted)
  const textAt = (key: string): string | undefined => {
    const value = of(key).get(key)
    return typeof value === 'string' ? value : undefined
  }
  const membersOf = (set: string): Map<string, number> => {
    const value = of(set).get(set)
    const kept = typeof value === 'object' ? [...value] : []
    return new Map(kept.filter(([, until]) => until > now()))
  }
  const write = (set: string, members: Map<string, number>) => {
    if (members.size === 0) return void of(set).delete(set)
    of(set).set(set, members, { ttl: Math.max(...members.values()) - now() })
  }

  return {
    shared: false,
    get: async key => textAt(key),
    async set(key, value, ttl) {
      of(key).set(key, value, { ttl })
    },
    async add(key, value, ttl) {
      if (of(key).has(key)) return false
      of(key).set(key, value, { ttl })
      return true
    },
    async replace(key, from, to, ttl) {
      if (textAt(key) !== from) return false
      of(key).set(key, to, { ttl })
      return true
    },
    async take(key) {
      const value = textAt(key)
      of(key).delete(key)
      return value
    },
    async delete(...keys) {
      for (const key of keys) of(key).delete(key)
    },
    async join(set, member, ttl, mostMembers) {
      const members = membersOf(set)
      members.delete(member)
      members.set(member, now() + ttl)
      for (const oldest of [...members.keys()].slice(0, Math.max(0, members.size - mostMembers))) members.delete(oldest)
      write(set, members)
      return members.size
    },
    async leave(set, member) {
      const members = membersOf(set)
      if (members.delete(member)) write(set, members)
    },
    members: async set => [...membersOf(set).keys()],
  }
}
