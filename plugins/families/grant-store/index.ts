// Stores the records of authorization servers (logins, consents, grants, codes, refresh tokens) and used proofs (DPoP) in any store.
import { createMemoryStore, type Store } from '../../../core/auth.ts'
import { HostError } from '../../../core/plugin.ts'

/** Key prefixes. A flood of pending entries never evicts granted ones. */
export const GRANT_KINDS = { pending: 'pending:', granted: 'granted:' } as const

export interface GrantSlots {
  /** Grants of an authorization server. */
  grantStore: GrantStore
}

const MIB = 1_048_576
const DAY = 86_400_000
const LONGEST_TTL = 100 * 365.25 * DAY
const LARGEST = MIB
/** Pending texts are counted in units of this many bytes. */
const UNIT = 1_024
/** Overhead of a text, bytes. */
const TEXT_COST = 500
const EVICTED = 500
/** Units that are uncounted together with a deleted text. The other units are uncounted when they are the oldest. */
const UNCOUNTED = 8
const MOST_MEMBERS = 10_000
const PENDING = 'grants:pending'

export interface GrantLimits {
  /** Bytes of pending texts; above it the oldest are evicted. Default: 128 MiB. */
  readonly pendingBytes?: number
  /** The store of granted keys. Default: the store of pending texts. */
  readonly granted?: Store
}

// Errors omit the key, which can be personal data.
function isGranted(key: string): boolean {
  if (key.startsWith(GRANT_KINDS.granted)) return true
  if (key.startsWith(GRANT_KINDS.pending)) return false
  const kinds = Object.values(GRANT_KINDS).join(' or ')
  throw new RangeError(`a key of a grant store must begin with ${kinds}; a key of ${key.length} characters does not`)
}

function partitionOfSet(key: string): string {
  if (isGranted(key)) return `grants:${key}`
  throw new RangeError('a set of a grant store requires a granted key')
}

/** Rounds up to whole milliseconds. */
function checkTtl(ttl: number): number {
  if (ttl <= LONGEST_TTL) return Math.max(0, Math.ceil(ttl))
  throw new RangeError(`the ttl of a grant store must be at most 100 years in milliseconds, but is ${ttl}`)
}

function checkSize(value: string) {
  if (Buffer.byteLength(value) <= LARGEST) return
  throw new HostError('unavailable', {
    detail: 'the data of this login is too large',
    reason: `a text of a grant store has at most ${LARGEST} bytes`,
  })
}

/** The members of the order for a text: its key for the first unit, then numbered keys. */
const unitsOf = (key: string, from: number, to: number): string[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => (from + index === 0 ? key : `${from + index} ${key}`))

const uncount = (keys: readonly string[]) => ({
  sortedSet: 'order',
  remove: keys.flatMap(key => unitsOf(key, 0, UNCOUNTED)),
})

/**
 * Stores sealed texts, and sets of granted keys. Operations on one key are atomic. A text and a set with the same key are
 * independent; `delete` removes both. Keys begin with a prefix of `GRANT_KINDS`. `ttl` in milliseconds, at most 100 years; 0 or
 * less expires at once; pending texts expire after a day at most. Rejects with a RangeError for other keys or ttls. Rejects with
 * a HostError `unavailable` for a text above 1 MiB (not written) or an unresponsive store (possibly written).
 *
 * Each granted key is a partition. Pending texts are one partition, because anyone can create them:
 * the sorted set `order` has the units of each text by the time of its last write.
 */
export function createGrantStore(store: Store, limits: GrantLimits = {}) {
  const { pendingBytes = 128 * MIB, granted = store } = limits
  const mostUnits = Math.floor(pendingBytes / UNIT)
  let evicting: Promise<void> | undefined
  let isOver = false

  const placeOf = (key: string): readonly [Store, string] =>
    isGranted(key) ? [granted, `grants:${key}`] : [store, PENDING]

  async function evictOldest(): Promise<boolean> {
    const [{ members, size }] = await store.read(PENDING, [{ sortedSet: 'order', limit: EVICTED }])
    if (size <= mostUnits) return false
    // Evicts one percent more, so that not every write has to evict.
    const names = members.slice(0, Math.floor(size - mostUnits * 0.99)).map(({ member }) => member)
    await store.transact(PENDING, [
      { sortedSet: 'order', remove: names },
      ...names.filter(name => name.startsWith(GRANT_KINDS.pending)).map(record => ({ record, delete: true })),
    ])
    return true
  }

  async function evictAll() {
    while (isOver) {
      isOver = false
      while (await evictOldest());
    }
  }

  function evict(): Promise<void> {
    isOver = true
    evicting ??= evictAll().finally(() => {
      evicting = undefined
    })
    return evicting
  }

  async function write(key: string, value: string, ttl: number, condition = {}): Promise<boolean> {
    const left = checkTtl(ttl)
    const [home, partition] = placeOf(key)
    checkSize(value)
    const isPending = partition === PENDING
    const change =
      left > 0 ? { set: { value }, ttl: isPending ? Math.min(left, DAY) : left } : ({ delete: true } as const)
    const step = { record: key, ...condition, ...change }
    if (!isPending) return (await home.transact(partition, [step])).done
    const units = left > 0 ? Math.ceil((Buffer.byteLength(value) + 2 * key.length + TEXT_COST) / UNIT) : 0
    const outcome = await home.transact(partition, [
      step,
      {
        sortedSet: 'order',
        below: { now: -DAY },
        put: Object.fromEntries(unitsOf(key, 0, units).map(unit => [unit, { now: 0 }])),
        remove: unitsOf(key, units, UNCOUNTED),
        ttl: DAY,
      },
    ])
    if (outcome.done && (outcome.results[1]?.size ?? 0) > mostUnits) await evict()
    return outcome.done
  }

  return {
    shared: store.shared !== false,
    async get(key: string) {
      const [home, partition] = placeOf(key)
      const [found] = await home.read(partition, [{ record: key }])
      return found?.fields['value']
    },
    async set(key: string, value: string, ttl: number) {
      await write(key, value, ttl)
    },
    add: (key: string, value: string, ttl: number) => write(key, value, ttl, { exists: false }),
    replace: (key: string, from: string, to: string, ttl: number) => write(key, to, ttl, { where: { value: from } }),
    /** Returns and deletes the value. Only one caller receives it. */
    async take(key: string) {
      const [home, partition] = placeOf(key)
      const step = { record: key, exists: true, delete: true, know: 0 }
      const outcome = await home.transact(partition, partition === PENDING ? [step, uncount([key])] : [step])
      return outcome.done ? outcome.results[0]?.fields?.['value'] : undefined
    },
    /** After a rejection, some keys can already be deleted. */
    async delete(...keys: readonly string[]) {
      const all = [...new Set(keys)]
      const pending = all.filter(key => !isGranted(key))
      const steps = [...pending.map(record => ({ record, delete: true })), uncount(pending)]
      await Promise.all([
        pending.length > 0 && store.transact(PENDING, steps),
        ...all.filter(isGranted).map(key => {
          const both = [
            { record: key, delete: true },
            { sortedSet: key, delete: true },
          ]
          return granted.transact(partitionOfSet(key), both)
        }),
      ])
    },
    /**
     * Adds a member, or renews it, and returns the set's size. Above `most` members, those that expire first are removed. `ttl` is
     * the same for all members of a set.
     */
    async join(set: string, member: string, ttl: number, most: number) {
      const partition = partitionOfSet(set)
      const left = checkTtl(ttl)
      checkSize(member)
      const change = left > 0 ? { put: { [member]: { now: left } }, keep: most, ttl: left } : { remove: [member] }
      const outcome = await granted.transact(partition, [{ sortedSet: set, below: { now: 1 }, ...change }])
      return (outcome.done && outcome.results[0]?.size) || 0
    },
    async leave(set: string, member: string) {
      await granted.transact(partitionOfSet(set), [{ sortedSet: set, remove: [member] }])
    },
    /** Lists members in order of expiry. */
    async members(set: string): Promise<readonly string[]> {
      const query = { sortedSet: set, from: { now: 1 }, limit: MOST_MEMBERS }
      const [{ members }] = await granted.read(partitionOfSet(set), [query])
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
