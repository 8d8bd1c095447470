// Stores the records of authorization servers (logins, consents, grants, codes, refresh tokens) and used proofs (DPoP) in any store.
import { createMemoryStore, type Store } from '../../../core/auth.ts'
import { HostError } from '../../../core/plugin.ts'

/** Key prefixes. A flood of pending entries never evicts granted ones. */
export const GRANT_PREFIXES = { pending: 'pending:', granted: 'granted:' } as const

export interface GrantSlots {
  /** Grants of an authorization server. */
  grantStore: GrantStore
}

const MIB = 1_048_576
const DAY = 86_400_000
const MAX_TTL = 100 * 365.25 * DAY
const MAX_VALUE_BYTES = MIB
/** Pending texts are counted in units of this many bytes. */
const UNIT = 1_024
/** Overhead of a text, bytes. */
const OVERHEAD = 500
const EVICTION_BATCH = 500
/** Units that are uncounted together with a deleted text. The other units are uncounted when they are the oldest. */
const COUNTED_UNITS = 8
const MAX_MEMBERS = 10_000
const PENDING = 'grants:pending'

export interface GrantLimits {
  /** Bytes of pending texts; above it the oldest are evicted. Default: 128 MiB. */
  readonly pendingBytes?: number
  /** The store of granted keys. Default: the store of pending texts. */
  readonly granted?: Store
}

// Errors omit the key, which can be personal data.
function isGranted(key: string): boolean {
  if (key.startsWith(GRANT_PREFIXES.granted)) return true
  if (key.startsWith(GRANT_PREFIXES.pending)) return false
  const kinds = Object.values(GRANT_PREFIXES).join(' or ')
  throw new RangeError(`a key of a grant store must begin with ${kinds}; a key of ${key.length} characters does not`)
}

function setPartition(key: string): string {
  if (isGranted(key)) return `grants:${key}`
  throw new RangeError('a set of a grant store requires a granted key')
}

/** Rounds up to whole milliseconds. */
function checkTtl(ttl: number): number {
  if (ttl <= MAX_TTL) return Math.max(0, Math.ceil(ttl))
  throw new RangeError(`the ttl of a grant store must be at most 100 years in milliseconds, but is ${ttl}`)
}

function checkSize(value: string) {
  if (Buffer.byteLength(value) <= MAX_VALUE_BYTES) return
  throw new HostError('unavailable', {
    detail: 'the login data is too large',
    reason: `a text of a grant store has at most ${MAX_VALUE_BYTES} bytes`,
  })
}

/** The members of the order for a text: its key for the first unit, then numbered keys. */
const unitKeys = (key: string, from: number, to: number): string[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => (from + index === 0 ? key : `${from + index} ${key}`))

const removeUnits = (keys: readonly string[]) => ({
  sortedSet: 'order',
  remove: keys.flatMap(key => unitKeys(key, 0, COUNTED_UNITS)),
})

/**
 * Stores sealed texts, and sets of granted keys. Operations on one key are atomic. A text and a set with the same key are
 * independent; `delete` removes both. Keys begin with a prefix in `GRANT_PREFIXES`. `ttl` in milliseconds, at most 100 years; 0 or
 * less expires at once; pending texts expire after a day at most. Rejects with a RangeError for other keys or ttls. Rejects with
 * a HostError `unavailable` for a text above 1 MiB (not written) or an unresponsive store (possibly written).
 *
 * Each granted key is a partition. Pending texts are one partition, because anyone can create them:
 * the sorted set `order` has the units of each text by the time of its last write.
 */
export function createGrantStore(store: Store, limits: GrantLimits = {}) {
  const { pendingBytes = 128 * MIB, granted = store } = limits
  const maxUnits = Math.floor(pendingBytes / UNIT)
  let eviction: Promise<void> | undefined
  let mustEvict = false

  const locate = (key: string): readonly [Store, string] =>
    isGranted(key) ? [granted, `grants:${key}`] : [store, PENDING]

  async function evictOldest(): Promise<boolean> {
    const [{ members, size }] = await store.read(PENDING, [{ sortedSet: 'order', limit: EVICTION_BATCH }])
    if (size <= maxUnits) return false
    // Evicts one percent more, so that not every write has to evict.
    const names = members.slice(0, Math.floor(size - maxUnits * 0.99)).map(({ member }) => member)
    await store.transact(PENDING, [
      { sortedSet: 'order', remove: names },
      ...names.filter(name => name.startsWith(GRANT_PREFIXES.pending)).map(record => ({ record, delete: true })),
    ])
    return true
  }

  async function evictAll() {
    while (mustEvict) {
      mustEvict = false
      while (await evictOldest());
    }
  }

  function evict(): Promise<void> {
    mustEvict = true
    eviction ??= evictAll().finally(() => {
      eviction = undefined
    })
    return eviction
  }

  async function write(key: string, value: string, ttl: number, condition = {}): Promise<boolean> {
    const life = checkTtl(ttl)
    const [target, partition] = locate(key)
    checkSize(value)
    const isPending = partition === PENDING
    const change =
      life > 0 ? { set: { value }, ttl: isPending ? Math.min(life, DAY) : life } : ({ delete: true } as const)
    const step = { record: key, ...condition, ...change }
    if (!isPending) return (await target.transact(partition, [step])).done
    const units = life > 0 ? Math.ceil((Buffer.byteLength(value) + 2 * key.length + OVERHEAD) / UNIT) : 0
    const outcome = await target.transact(partition, [
      step,
      {
        sortedSet: 'order',
        below: { now: -DAY },
        put: Object.fromEntries(unitKeys(key, 0, units).map(unit => [unit, { now: 0 }])),
        remove: unitKeys(key, units, COUNTED_UNITS),
        ttl: DAY,
      },
    ])
    if (outcome.done && (outcome.results[1]?.size ?? 0) > maxUnits) await evict()
    return outcome.done
  }

  return {
    shared: store.shared !== false,
    async get(key: string) {
      const [target, partition] = locate(key)
      const [found] = await target.read(partition, [{ record: key }])
      return found?.fields['value']
    },
    async set(key: string, value: string, ttl: number) {
      await write(key, value, ttl)
    },
    add: (key: string, value: string, ttl: number) => write(key, value, ttl, { exists: false }),
    replace: (key: string, from: string, to: string, ttl: number) => write(key, to, ttl, { where: { value: from } }),
    /** Returns and deletes the value. Only one caller receives it. */
    async take(key: string) {
      const [target, partition] = locate(key)
      const step = { record: key, exists: true, delete: true, know: 0 }
      const outcome = await target.transact(partition, partition === PENDING ? [step, removeUnits([key])] : [step])
      return outcome.done ? outcome.results[0]?.fields?.['value'] : undefined
    },
    /** After a rejection, some keys can already be deleted. */
    async delete(...keys: readonly string[]) {
      const all = [...new Set(keys)]
      const pending = all.filter(key => !isGranted(key))
      const steps = [...pending.map(record => ({ record, delete: true })), removeUnits(pending)]
      await Promise.all([
        pending.length > 0 && store.transact(PENDING, steps),
        ...all.filter(isGranted).map(key => {
          const both = [
            { record: key, delete: true },
            { sortedSet: key, delete: true },
          ]
          return granted.transact(setPartition(key), both)
        }),
      ])
    },
    /**
     * Adds a member, or renews it, and returns the set's size. Above `maxMembers`, those that expire first are removed. `ttl` is
     * the same for all members of a set.
     */
    async join(set: string, member: string, ttl: number, maxMembers: number) {
      const partition = setPartition(set)
      const life = checkTtl(ttl)
      checkSize(member)
      const change = life > 0 ? { put: { [member]: { now: life } }, keep: maxMembers, ttl: life } : { remove: [member] }
      const outcome = await granted.transact(partition, [{ sortedSet: set, below: { now: 1 }, ...change }])
      return (outcome.done && outcome.results[0]?.size) || 0
    },
    async leave(set: string, member: string) {
      await granted.transact(setPartition(set), [{ sortedSet: set, remove: [member] }])
    },
    /** Lists members in order of expiry. */
    async members(set: string): Promise<readonly string[]> {
      const query = { sortedSet: set, from: { now: 1 }, limit: MAX_MEMBERS }
      const [{ members }] = await granted.read(setPartition(set), [query])
      return members.map(({ member }) => member)
    },
  }
}

export type GrantStore = ReturnType<typeof createGrantStore>

/** A store in this process. Above `granted` bytes, the least recently used granted keys are evicted. */
export const createMemoryGrantStore = (
  { pending = 32 * MIB, granted = 128 * MIB }: { readonly pending?: number; readonly granted?: number } = {},
  now: () => number = Date.now,
): GrantStore =>
  createGrantStore(createMemoryStore({ now }), {
    pendingBytes: pending,
    granted: createMemoryStore({ now, maxBytes: granted, evicts: true }),
  })
