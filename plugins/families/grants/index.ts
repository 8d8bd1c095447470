// The grant store in memory, and the operations of a grant store on any table of entries.
import { LRUCache } from 'lru-cache'
import { checkGrantTtl, type GrantStore, grantKindOf } from '../../../core/auth.ts'
import { HostError } from '../../../core/index.ts'

const MIB = 1_048_576
/** Bytes of keys and values, by kind. Above it the least recently used entries are evicted. */
const MAX_BYTES = { pending: 32 * MIB, granted: 128 * MIB }
/** Overhead of an entry and of a set member, bytes. */
const ENTRY_COST = 240
const MEMBER_COST = 80
const PURGE_INTERVAL = 1_000

/** Set members with their expiry, oldest first. */
export type Members = ReadonlyArray<readonly [member: string, until: number]>

/** Entries by name. `until`: expiry, milliseconds since the epoch; `get` returns no expired entry. */
export interface GrantEntries {
  get(name: string): string | Members | undefined
  set(name: string, value: string | Members, until: number): void
  delete(name: string): void
}

export function createGrantStore(entriesOf: (key: string) => GrantEntries, now: () => number): GrantStore {
  const read = (key: string) => entriesOf(key).get(`text ${key}`) as string | undefined
  const write = (key: string, value: string, ttl: number) => entriesOf(key).set(`text ${key}`, value, now() + ttl)
  const membersOf = (key: string) =>
    ((entriesOf(key).get(`set ${key}`) ?? []) as Members).filter(([, until]) => until > now())
  const writeMembers = (key: string, members: Members) =>
    entriesOf(key).set(`set ${key}`, members, Math.max(0, ...members.map(([, until]) => until)))

  return {
    shared: false,
    get: async key => read(key),
    set: async (key, value, ttl) => write(key, value, checkGrantTtl(ttl)),
    async add(key, value, ttl) {
      const whole = checkGrantTtl(ttl)
      if (read(key) !== undefined) return false
      write(key, value, whole)
      return true
    },
    async replace(key, from, to, ttl) {
      const whole = checkGrantTtl(ttl)
      if (read(key) !== from) return false
      write(key, to, whole)
      return true
    },
    async take(key) {
      const value = read(key)
      entriesOf(key).delete(`text ${key}`)
      return value
    },
    async delete(...keys) {
      const found = keys.map(key => ({ key, entries: entriesOf(key) }))
      for (const { key, entries } of found) for (const name of [`text ${key}`, `set ${key}`]) entries.delete(name)
    },
    async join(key, member, ttl, most) {
      const known = membersOf(key)
      const earlier = known.find(([name]) => name === member)?.[1] ?? 0
      const until = Math.max(now() + checkGrantTtl(ttl), earlier)
      const others = known.filter(([name]) => name !== member)
      const members = until > now() ? [...others, [member, until] as const] : others
      const kept = members.slice(Math.max(0, members.length - most))
      writeMembers(key, kept)
      return kept.length
    },
    async leave(key, member) {
      const members = membersOf(key)
      const others = members.filter(([name]) => name !== member)
      if (others.length < members.length) writeMembers(key, others)
    },
    members: async key => membersOf(key).map(([member]) => member),
  }
}

/** One byte per character for ASCII text, otherwise two. */
const bytesOf = (text: string) => (Buffer.byteLength(text) === text.length ? 1 : 2) * text.length

const costOf = (name: string, value: string | Members): number =>
  ENTRY_COST +
  bytesOf(name) +
  (typeof value === 'string' ? bytesOf(value) : value.reduce((sum, [member]) => sum + MEMBER_COST + bytesOf(member), 0))

function createEntries(maxBytes: number, now: () => number): GrantEntries {
  const cache = new LRUCache<string, { readonly value: string | Members; readonly until: number }>({
    maxSize: maxBytes,
    sizeCalculation: ({ value }, name) => costOf(name, value),
  })
  let purgeAt = Number.NEGATIVE_INFINITY

  /** A full cache must not evict live entries while it holds expired ones. */
  function purge() {
    purgeAt = now() + PURGE_INTERVAL
    for (const [name, { until }] of cache.entries()) if (until <= now()) cache.delete(name)
  }

  return {
    get(name) {
      const found = cache.get(name)
      return found && found.until > now() ? found.value : undefined
    },
    set(name, value, until) {
      const bytes = costOf(name, value)
      if (bytes > maxBytes) {
        throw new HostError('unavailable', {
          detail: 'what is to be kept for this login is too large',
          reason: `an entry of ${bytes} bytes does not fit into a grant store of ${maxBytes}`,
        })
      }
      if (cache.calculatedSize + bytes > maxBytes && now() >= purgeAt) purge()
      if (until > now()) cache.set(name, { value, until })
      else cache.delete(name)
    },
    delete: name => void cache.delete(name),
  }
}

export function createMemoryGrantStore(maxBytes = MAX_BYTES, now: () => number = Date.now): GrantStore {
  const kinds = { pending: createEntries(maxBytes.pending, now), granted: createEntries(maxBytes.granted, now) }
  return createGrantStore(key => kinds[grantKindOf(key)], now)
}
