// The default of the slot `grantStore`: in this process, gone with it, and bounded.
import { HostError } from '../http/errors.ts'
import { checkGrantTtl, type GrantStore, grantKindOf } from './grant-store.ts'

const MIB = 1_048_576
/** Bytes of keys and values, for each kind: of more, those that were used longest ago go. */
const MOST = { pending: 32 * MIB, granted: 128 * MIB }
/** What an entry costs beside its texts, and a member of a set, bytes: test/plugins/grant-store-memory.test.ts holds it. */
const ENTRY_COST = 240
const MEMBER_COST = 80
/** Entries that a write looks at, to find what is past its time before something else loses its place for it. */
const SWEPT = 4

/** Of a set: until when each member is there, in the order in which they joined. */
type Members = ReadonlyMap<string, number>
type Value = string | Members

interface Entry {
  readonly value: Value
  readonly until: number
  readonly bytes: number
}

/** Two a character as soon as one of them is not ASCII. */
const bytesOf = (text: string) => (Buffer.byteLength(text) === text.length ? 1 : 2) * text.length

function costOf(key: string, value: Value): number {
  if (typeof value === 'string') return ENTRY_COST + bytesOf(key) + bytesOf(value)
  const members = [...value.keys()].reduce((sum, member) => sum + MEMBER_COST + bytesOf(member), 0)
  return ENTRY_COST + bytesOf(key) + members
}

/** Entries of one kind. A cache with a ttl of its own would evict what lives before what is past its time. */
class Entries {
  /** What was used longest ago is at the front. */
  readonly #entries = new Map<string, Entry>()
  readonly #most: number
  readonly #now: () => number
  #bytes = 0
  #front: Iterator<string> | undefined
  #sweeping: Iterator<[string, Entry]> | undefined

  constructor(most: number, now: () => number) {
    this.#most = most
    this.#now = now
  }

  get(name: string): Value | undefined {
    const entry = this.#entries.get(name)
    if (!entry) return undefined
    this.#entries.delete(name)
    if (entry.until > this.#now()) {
      this.#entries.set(name, entry)
      return entry.value
    }
    this.#bytes -= entry.bytes
    return undefined
  }

  delete(name: string) {
    this.#bytes -= this.#entries.get(name)?.bytes ?? 0
    this.#entries.delete(name)
  }

  set(name: string, value: Value, until: number) {
    const bytes = costOf(name, value)
    if (bytes > this.#most) throw tooLarge(bytes, this.#most)
    this.delete(name)
    this.#sweep()
    if (until <= this.#now()) return
    this.#entries.set(name, { value, until, bytes })
    this.#bytes += bytes
    while (this.#bytes > this.#most) this.#evict()
  }

  /** What it is given next is at the front: all that it was given before is gone. To begin anew would pass over each of these. */
  #evict() {
    this.#front ??= this.#entries.keys()
    const { done, value } = this.#front.next()
    if (done) this.#front = undefined
    else this.delete(value)
  }

  #sweep() {
    for (let looks = 0; looks < SWEPT; looks++) {
      this.#sweeping ??= this.#entries.entries()
      const { done, value } = this.#sweeping.next()
      if (done) {
        this.#sweeping = undefined
        return
      }
      const [name, { until }] = value
      if (until <= this.#now()) this.delete(name)
    }
  }
}

const tooLarge = (bytes: number, most: number) =>
  new HostError('unavailable', {
    detail: 'what is to be kept for this login is too large',
    reason: `an entry of ${bytes} bytes does not fit into a grant store of ${most}`,
  })

/** `most`: bytes for each kind, and `now`: milliseconds since the epoch; for tests. */
export function createMemoryGrantStore(most = MOST, now: () => number = Date.now): GrantStore {
  const kinds = { pending: new Entries(most.pending, now), granted: new Entries(most.granted, now) }
  const of = (key: string) => kinds[grantKindOf(key)]
  const textName = (key: string) => `text ${key}`
  const setName = (key: string) => `set ${key}`

  const read = (key: string) => of(key).get(textName(key)) as string | undefined
  const write = (key: string, value: string, ttl: number) => of(key).set(textName(key), value, now() + ttl)
  const membersOf = (set: string): Map<string, number> => {
    const kept = (of(set).get(setName(set)) ?? new Map()) as Members
    return new Map([...kept].filter(([, until]) => until > now()))
  }
  const writeMembers = (set: string, members: Members) =>
    of(set).set(setName(set), members, Math.max(0, ...members.values()))

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
      of(key).delete(textName(key))
      return value
    },
    async delete(...keys) {
      const kept = keys.map(key => ({ key, entries: of(key) }))
      for (const { key, entries } of kept) for (const name of [textName(key), setName(key)]) entries.delete(name)
    },
    async join(set, member, ttl, mostMembers) {
      const members = membersOf(set)
      const until = Math.max(now() + checkGrantTtl(ttl), members.get(member) ?? 0)
      members.delete(member)
      if (until > now()) members.set(member, until)
      for (const oldest of [...members.keys()].slice(0, Math.max(0, members.size - mostMembers))) members.delete(oldest)
      writeMembers(set, members)
      return members.size
    },
    async leave(set, member) {
      const members = membersOf(set)
      if (members.delete(member)) writeMembers(set, members)
    },
    members: async set => [...membersOf(set).keys()],
  }
}
