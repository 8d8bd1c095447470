// The slots of an authorization server: `grantStore` (logins, consents, grants, codes, refresh tokens) and `authorizationServer`.
import { HostError } from '../http/errors.ts'
import type { HostContext } from '../kernel/endpoint.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import type { SetStep, Store } from '../store/store.ts'

/** Key prefixes. A flood of pending entries never evicts granted ones. */
export const GRANT_KINDS = { pending: 'pending:', granted: 'granted:' } as const

const LONGEST_TTL = 100 * 365.25 * 86_400_000

export function grantKindOf(key: string): keyof typeof GRANT_KINDS {
  if (key.startsWith(GRANT_KINDS.pending)) return 'pending'
  if (key.startsWith(GRANT_KINDS.granted)) return 'granted'
  // The error omits the key, which can be personal data.
  throw new RangeError(
    `a key of a grant store begins with ${Object.values(GRANT_KINDS).join(' or ')}; this one of ${key.length} characters does not`,
  )
}

/** Rounds a ttl up to whole milliseconds. Throws a RangeError for an invalid ttl. */
export function checkGrantTtl(ttl: number): number {
  if (ttl <= LONGEST_TTL) return Math.max(0, Math.ceil(ttl))
  throw new RangeError(
    `a grant store keeps things for at most 100 years: the ttl is to be in milliseconds, and is ${ttl}`,
  )
}

const MIB = 1_048_576
const DAY = 86_400_000
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
const partitionOf = (key: string) => `grants:${key}`

export interface GrantLimits {
  /** Bytes of pending texts; above it the oldest are evicted. */
  readonly pendingBytes?: number
  /** The store of granted keys. Default: the store of pending texts. */
  readonly granted?: Store
}

function checkSize(value: string) {
  if (Buffer.byteLength(value) <= LARGEST) return
  throw new HostError('unavailable', {
    detail: 'the data of this login is too large',
    reason: `a text of a grant store has at most ${LARGEST} bytes`,
  })
}

const isGranted = (key: string) => grantKindOf(key) === 'granted'

function grantedSet(key: string): string {
  if (!isGranted(key)) throw new RangeError('a set of a grant store has a granted key')
  return key
}

/** The members of the order for a text: its key for the first unit, then numbered keys. */
const unitsOf = (key: string, from: number, to: number): string[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => (from + index === 0 ? key : `${from + index} ${key}`))

const uncount = (...keys: readonly string[]): SetStep => ({
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
    const left = checkGrantTtl(ttl)
    const pending = !isGranted(key)
    checkSize(value)
    const change =
      left > 0 ? { set: { value }, ttl: pending ? Math.min(left, DAY) : left } : ({ delete: true } as const)
    const step = { record: key, ...condition, ...change }
    if (!pending) return (await granted.transact(partitionOf(key), [step])).done
    const units = left > 0 ? Math.ceil((Buffer.byteLength(value) + 2 * key.length + TEXT_COST) / UNIT) : 0
    const outcome = await store.transact(PENDING, [
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
      const [found] = isGranted(key)
        ? await granted.read(partitionOf(key), [{ record: key }])
        : await store.read(PENDING, [{ record: key }])
      return found?.fields['value']
    },
    async set(key: string, value: string, ttl: number) {
      await write(key, value, ttl)
    },
    add: (key: string, value: string, ttl: number) => write(key, value, ttl, { exists: false }),
    replace: (key: string, from: string, to: string, ttl: number) => write(key, to, ttl, { where: { value: from } }),
    /** Returns and deletes the value. Only one caller receives it. */
    async take(key: string) {
      const step = { record: key, exists: true, delete: true, know: 0 }
      const outcome = isGranted(key)
        ? await granted.transact(partitionOf(key), [step])
        : await store.transact(PENDING, [step, uncount(key)])
      return outcome.done ? outcome.results[0]?.fields?.['value'] : undefined
    },
    /** After a rejection, some keys can already be deleted. */
    async delete(...keys: readonly string[]) {
      const all = [...new Set(keys)]
      const kept = all.filter(isGranted)
      const pending = all.filter(key => !isGranted(key))
      await Promise.all([
        ...kept.map(key =>
          granted.transact(partitionOf(key), [
            { record: key, delete: true },
            { sortedSet: key, delete: true },
          ]),
        ),
        pending.length > 0 &&
          store.transact(PENDING, [...pending.map(record => ({ record, delete: true })), uncount(...pending)]),
      ])
    },
    /**
     * Adds a member, or renews it, and returns the set's size. Above `most` members, those that expire first are removed. `ttl` is
     * the same for all members of a set.
     */
    async join(set: string, member: string, ttl: number, most: number) {
      const key = grantedSet(set)
      const left = checkGrantTtl(ttl)
      checkSize(member)
      const change = left > 0 ? { put: { [member]: { now: left } }, keep: most, ttl: left } : { remove: [member] }
      const outcome = await granted.transact(partitionOf(key), [{ sortedSet: key, below: { now: 1 }, ...change }])
      return (outcome.done && outcome.results[0]?.size) || 0
    },
    async leave(set: string, member: string) {
      const key = grantedSet(set)
      await granted.transact(partitionOf(key), [{ sortedSet: key, remove: [member] }])
    },
    /** Lists members in order of expiry. */
    async members(set: string): Promise<readonly string[]> {
      const key = grantedSet(set)
      const query = { sortedSet: key, from: { now: 1 }, limit: MOST_MEMBERS }
      const [{ members }] = await granted.read(partitionOf(key), [query])
      return members.map(({ member }) => member)
    },
  }
}

export type GrantStore = ReturnType<typeof createGrantStore>

/**
 * Creates a store in this process. A flood of pending texts never evicts granted ones; above `granted` bytes the least
 * recently used are evicted.
 */
export const createMemoryGrantStore = (
  { pending = 32 * MIB, granted = 128 * MIB }: { readonly pending?: number; readonly granted?: number } = {},
  now: () => number = Date.now,
): GrantStore =>
  createGrantStore(createMemoryStore({ now }), {
    pendingBytes: pending,
    granted: createMemoryStore({ now, maxBytes: granted, evicts: true }),
  })

/** A public key as a JWK (RFC 7517) with `kid`, `alg` and `use`. */
export type PublicJwk = Readonly<Record<string, unknown>>

/** The `authorizationServer` slot, for routes with host-issued tokens. */
export interface AuthorizationServer {
  /** The issuer identifier. Without `http.publicUrl` it is known after the host listens. */
  issuer(): string | undefined
  /** The signing key, then earlier keys that still verify. Returns the same list until a key changes. */
  keys(): readonly PublicJwk[]
  /** True if anyone can sign in (development). */
  readonly isDevelopment?: boolean
  readonly pages?: UserPages
}

export type UserPage = { title: string; text: string; isError: boolean; action?: { label: string; href: string } } & {
  /** Texts by value. The button of an item sends its value as `name`, and the token as `csrf`. */
  list?: { name: string; label: string; token: string; items: ReadonlyMap<string, string> }
}

export interface UserPages {
  /** The subject of the browser's user. Undefined: the response redirects to the sign-in, which returns to `path`. */
  identify(ctx: HostContext, path: string): Promise<string | undefined>
  /** The roles of the browser's user, checked with the identity provider. Undefined: the user has to sign in again. */
  rolesOf(ctx: HostContext): Promise<readonly string[] | undefined>
  show(ctx: HostContext, page: UserPage, status?: number): Promise<void>
  /** `listener` receives subjects that can no longer sign in. */
  onDenied(listener: (subject: string) => void): unknown
}

export const noAuthorizationServer: AuthorizationServer = { issuer: () => undefined, keys: () => [] }
