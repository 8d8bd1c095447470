// The session store above a shared `Store`. Each session has a partition with these records:
//   session   opening, home, revision, client, level; w:<uri> for each watched resource, wn their number, wb their bytes;
//             restoredFrom, restoredAt: the version of the copy that it was restored from, and the time
//   use       r:<request id> the node that runs the request; n:<node> a node with a copy; b:<node> end of its use there;
//             stream, streamNode, streamEpoch: the writer of messages that belong to no call
//   ended     marks an ended session
// The partition `sessions` has sorted sets: `of:<holder>` by last use, `idle:<holder>` and `idle` (<digest> <holder>) by
// the start of idleness, `holders` by number of idle sessions.
import { createHash } from 'node:crypto'
import type { Logger } from '../kernel/log.ts'
import { MAX_CLIENT_FACT, MAX_WATCHED, MAX_WATCHED_BYTES } from '../mcp/client-limits.ts'
import type { LogLevel, RequestId } from '../mcp/wire/protocol.ts'
import type { Revision } from '../mcp/wire/revisions.ts'
import type { Fields, Found, Outcome, RecordStep, Score, SetStep, Store } from '../store/store.ts'
import { watchCost, watchedCost } from './change-feed.ts'
import { partitionOf } from './session-id.ts'
import type {
  Changed,
  Entered,
  EntryRequest,
  HeldHere,
  SessionLimits,
  SessionRecord,
  SessionStore,
  SessionUse,
  StateChange,
  StreamClaim,
  Victim,
} from './session-store.ts'

const SESSION = 'session'
const USE = 'use'
const ENDED = 'ended'
/** An empty set: its query returns the time of the store. */
const CLOCK = 'clock'

const INDEX = 'sessions'
const IDLE = 'idle'
const HOLDERS = 'holders'

/** Milliseconds for which an ended session is remembered. Processes of a machine never lose contact for longer. */
const ENDED_LIFETIME = 3_600_000
const ENDED_LIFETIME_ON_HOST = 600_000
/** Bytes of a session besides its opening request: client data, which follows, and overhead. */
const SESSION_COST = 2 * MAX_CLIENT_FACT + 2_000
const OWNER_SHARE = 0.2
/** Milliseconds after an outage for which other nodes can still restore sessions. */
const RECOVERY_TIME = 10_000
/** Maximum sessions with completed requests that the store still has as running. */
const MAX_COMPLETED = 10_000
/** Milliseconds after which completed requests are written if the session sends no further request. */
const LEAVE_DELAY = 100
/** The same delay after a failure. */
const RETRY_DELAY = 1_000
/** Maximum uses per transaction. */
const MAX_MARKED = 500
const EXPIRED_AT_ONCE = 100
const MAX_VICTIMS = 200

/** Returns the key of a running request. Distinguishes `1` and `'1'`. */
const runKey = (id: RequestId) => `r:${JSON.stringify(id)}`

/** Pseudonymises users and addresses. */
const nameHolder = (holder: string) =>
  holder.startsWith('#') ? holder : `#${createHash('sha256').update(holder).digest('base64url').slice(0, 16)}`

const namesAfter = (prefix: string, fields: Fields = {}): string[] =>
  Object.keys(fields).flatMap(name => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))

function readRecord({ version = 0, fields = {} }: Found): SessionRecord {
  const { opening = 'null', home = '', revision, client = '{}', level } = fields
  return {
    opening: JSON.parse(opening),
    version,
    home,
    state: {
      revision: (revision || undefined) as Revision | undefined,
      client: { info: undefined, ...JSON.parse(client) },
      logLevel: level as LogLevel,
      watched: namesAfter('w:', fields),
    },
  }
}

function writeRecord({ opening, home, state }: SessionRecord): Fields {
  const { revision = '', client, logLevel, watched } = state
  return {
    ...Object.fromEntries(watched.map(uri => [`w:${uri}`, '1'])),
    ...{ opening: JSON.stringify(opening), home, revision, client: JSON.stringify(client), level: logLevel },
    ...{ wn: String(watched.length), wb: String(watchedCost(watched)) },
  }
}

const bytesOf = (fields: Fields) =>
  Object.entries(fields).reduce((sum, entry) => sum + Buffer.byteLength(entry.join()), SESSION_COST)

function changeStep(change: StateChange): Partial<RecordStep> {
  if ('watch' in change) {
    const uri = `w:${change.watch}`
    const add = { wn: 1, wb: watchCost(change.watch) }
    return { where: { [uri]: null }, set: { [uri]: '1' }, add, most: { wn: MAX_WATCHED, wb: MAX_WATCHED_BYTES } }
  }
  if ('unwatch' in change) {
    const uri = `w:${change.unwatch}`
    return { where: { [uri]: '1' }, unset: [uri], add: { wn: -1, wb: -watchCost(change.unwatch) } }
  }
  if ('logLevel' in change) return { set: { level: change.logLevel } }
  return { set: { revision: change.revision, client: JSON.stringify(change.client) } }
}

/** Returns the changes of this copy that a record restored from an older copy lacks. Keeps all watched resources. */
function changesSince(fields: Fields, record: SessionRecord): Partial<RecordStep> | undefined {
  const { restoredFrom, restoredAt } = fields
  if (!(Number(restoredFrom) < record.version && record.version < Number(restoredAt))) return undefined
  const { opening, home, ...own } = writeRecord(record)
  const set = { ...own, restoredFrom: String(record.version) }
  const others = namesAfter('w:', fields).filter(uri => own[`w:${uri}`] === undefined)
  const [number, bytes] = [Number(own['wn']) + others.length, Number(own['wb']) + watchedCost(others)]
  if (number > MAX_WATCHED || bytes > MAX_WATCHED_BYTES) return { set, unset: others.map(uri => `w:${uri}`) }
  return { set: { ...set, wn: String(number), wb: String(bytes) } }
}

const isInUse = (fields: Fields, now: number) =>
  Object.entries(fields).some(
    ([name, value]) => name.startsWith('r:') || (name.startsWith('b:') && Number(value) > now),
  )

interface IdleMark extends SessionUse {
  readonly owner: string
}

class StoredSessions implements SessionStore {
  readonly node: string
  readonly shared: true | 'host'
  readonly #store: Store
  readonly #log: Logger
  readonly #bytesPerOwner: number
  /** Sessions whose use by this node is stored. */
  readonly #inUse = new Set<string>()
  /** Completed requests that the store still has as running. */
  readonly #completed = new Map<string, Set<string>>()
  #flushTimer: NodeJS.Timeout | undefined
  #recoveringUntil = 0

  constructor(store: Store, { node, log, maxSize = Number.POSITIVE_INFINITY }: SessionStoreSettings) {
    this.#store = store
    this.#bytesPerOwner = maxSize * OWNER_SHARE
    this.#log = log
    this.node = node
    this.shared = store.shared === 'host' ? 'host' : true
  }

  async create(digest: string, record: SessionRecord, { idleTimeout: ttl, maxPerOwner }: SessionLimits) {
    const holder = nameHolder(record.opening.holder)
    const fields = writeRecord(record)
    const most = Math.min(maxPerOwner ?? Number.POSITIVE_INFINITY, Math.floor(this.#bytesPerOwner / bytesOf(fields)))
    if (!(await this.#admit(digest, holder, ttl, most))) return undefined
    try {
      const outcome = await this.#store.transact(partitionOf(digest), [
        { record: SESSION, set: fields, ttl },
        { record: USE, set: { [`n:${this.node}`]: '1' }, ttl },
      ])
      return outcome.done ? outcome.results[0]?.version : undefined
    } catch (error) {
      const forgotten = this.#forget(digest, holder)
      forgotten.catch(err => this.#log.debug({ err }, 'a session that failed to open counts until its idle timeout'))
      throw error
    }
  }

  async #admit(digest: string, holder: string, ttl: number, most = Number.POSITIVE_INFINITY) {
    const admitted = await this.#store.transact(INDEX, [
      {
        sortedSet: `of:${holder}`,
        below: { now: -ttl },
        ...(most < Number.POSITIVE_INFINITY && { most: most - 1 }),
        put: { [digest]: { now: 0 } },
        ttl,
      },
    ])
    return admitted.done
  }

  /** Takes one round trip for each request of a client. Also removes the completed requests of this node. */
  async enter(digest: string, entry: EntryRequest, limits: SessionLimits): Promise<Entered> {
    const { version, requests, from } = entry
    const { idleTimeout: ttl } = limits
    const left = this.#takeCompleted(digest)
    const completed = [...left]
    const own = [null, this.node]
    const where: Record<string, ReadonlyArray<string | null>> = {}
    const set: Record<string, string> = version === 0 ? { [`n:${this.node}`]: '1' } : {}
    for (const key of completed) where[key] = own
    for (const request of requests) {
      const key = runKey(request)
      where[key] = left.delete(key) ? [...own, ...from] : [null, ...from]
      set[key] = this.node
    }
    const steps = [
      { record: SESSION, exists: true, ttl, know: version },
      { record: USE, where, set, ...(left.size > 0 && { unset: [...left] }), ttl },
    ]
    const outcome = await this.#enterOnce(digest, steps, completed)
    if (outcome.done) {
      const [session] = outcome.results
      return { kind: 'entered', record: session?.fields && readRecord(session) }
    }
    const { step, found } = outcome
    if (step === 0) return { kind: 'missing', ended: await this.#isEnded(digest) }
    for (const request of requests) {
      const node = found.fields?.[runKey(request)]
      if (node !== undefined && !where[runKey(request)]?.includes(node)) return { kind: 'taken', request, node }
    }
    // Another node runs a request with the id of a completed one.
    return this.enter(digest, entry, limits)
  }

  /** Keeps the completed requests if the transaction may not have been applied. */
  async #enterOnce(digest: string, steps: readonly RecordStep[], completed: readonly string[]) {
    let outcome: Outcome | undefined
    try {
      outcome = await this.#store.transact(partitionOf(digest), steps, 'relaxed')
      return outcome
    } finally {
      if (!outcome?.done && outcome?.step !== 0) this.#keepCompleted(digest, completed, outcome?.found.fields)
    }
  }

  async #isEnded(digest: string) {
    const [ended] = await this.#store.read(partitionOf(digest), [{ record: ENDED }])
    return ended !== undefined
  }

  /** The session's next request or a timer removes them from the store. */
  leave(digest: string, requests: readonly RequestId[]) {
    if (requests.length === 0) return
    this.#keepCompleted(digest, requests.map(runKey))
  }

  #takeCompleted(digest: string): Set<string> {
    const left = this.#completed.get(digest)
    if (left) this.#completed.delete(digest)
    return left ?? new Set()
  }

  /** `found`: requests that another node runs are no longer ours. */
  #keepCompleted(digest: string, keys: Iterable<string>, found: Fields = {}, delay = LEAVE_DELAY) {
    const left = this.#completed.get(digest) ?? new Set<string>()
    if (left.size === 0 && this.#completed.size >= MAX_COMPLETED) return
    for (const key of keys) if ((found[key] ?? this.node) === this.node) left.add(key)
    if (left.size === 0) return
    this.#completed.set(digest, left)
    this.#flushTimer ??= setTimeout(() => void this.#flushCompleted(), delay).unref()
  }

  async #flushCompleted() {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    const notify = async (digest: string) => {
      const left = this.#takeCompleted(digest)
      const where = Object.fromEntries([...left].map(key => [key, [null, this.node]]))
      try {
        const step = { record: USE, where, unset: [...left] }
        const outcome = await this.#store.transact(partitionOf(digest), [step], 'relaxed')
        if (!outcome.done) this.#keepCompleted(digest, left, outcome.found.fields)
      } catch (err) {
        this.#log.debug({ err }, 'could not report a response to the store')
        this.#keepCompleted(digest, left, {}, RETRY_DELAY)
      }
    }
    await Promise.all([...this.#completed.keys()].map(notify))
  }

  async change(digest: string, change: StateChange): Promise<Changed | 'full' | undefined> {
    const session = { record: SESSION, exists: true, know: 0 }
    const use = { record: USE, know: 0 }
    let outcome = await this.#store.transact(partitionOf(digest), [{ ...session, ...changeStep(change) }, use])
    if (!outcome.done && outcome.found.version !== 0) {
      if ('watch' in change && outcome.found.fields?.[`w:${change.watch}`] === undefined) return 'full'
      // A step can fail if the resource is already watched, or was not watched.
      outcome = await this.#store.transact(partitionOf(digest), [session, use])
    }
    if (!outcome.done) return undefined
    const [changed = {}, copies] = outcome.results
    return { record: readRecord(changed), nodes: this.#others(copies) }
  }

  #others = (use: Found | undefined) => namesAfter('n:', use?.fields).filter(node => node !== this.node)

  async nodeOf(digest: string, request: RequestId) {
    const [use] = await this.#store.read(partitionOf(digest), [{ record: USE }])
    return use?.fields[runKey(request)]
  }

  async adopt(digest: string, from: string) {
    const step = { record: SESSION, where: { home: from }, set: { home: this.node } }
    return (await this.#store.transact(partitionOf(digest), [step])).done
  }

  async claimStream(digest: string, stream: string): Promise<StreamClaim | undefined> {
    for (;;) {
      const [session, use] = await this.#store.read(partitionOf(digest), [{ record: SESSION }, { record: USE }])
      if (!session) return undefined
      const { stream: had = '', streamNode, streamEpoch } = use?.fields ?? {}
      const before = streamNode === undefined ? undefined : { node: streamNode, stream: had }
      if (streamNode === this.node && had === stream) return { epoch: Number(streamEpoch), before }
      // A time, so that epochs grow even after a loss.
      const epoch = Math.max(Number(streamEpoch ?? 0) + 1, session.now)
      const claimed = await this.#store.transact(partitionOf(digest), [
        { record: SESSION, exists: true },
        {
          record: USE,
          where: { streamEpoch: streamEpoch ?? null },
          set: { stream, streamNode: this.node, streamEpoch: String(epoch) },
          ttl: { new: (session.expires ?? session.now) - session.now },
        },
      ])
      if (claimed.done) return { epoch, before }
    }
  }

  async end(digest: string, holder: string | undefined, onlyIdle = false) {
    let idle: Partial<RecordStep> = {}
    if (onlyIdle) {
      const [session, use] = await this.#store.read(partitionOf(digest), [{ record: SESSION }, { record: USE }])
      if (session && use && isInUse(use.fields, use.now)) return undefined
      idle = { version: use?.version ?? 0 }
    }
    const forget = async () => (holder === undefined ? undefined : this.#forget(digest, nameHolder(holder)))
    const [outcome] = await Promise.all([
      this.#store.transact(partitionOf(digest), [
        { record: SESSION, delete: true, know: 0 },
        { record: USE, ...idle, delete: true, know: 0 },
        { record: ENDED, set: { ended: '1' }, ttl: this.shared === 'host' ? ENDED_LIFETIME_ON_HOST : ENDED_LIFETIME },
      ]),
      // Immediate, because the owner can open the next session before this one has ended.
      onlyIdle ? undefined : forget(),
    ])
    // The session was used since it was selected.
    if (!outcome.done) return undefined
    this.#inUse.delete(digest)
    if (onlyIdle) await forget()
    const [session, use] = outcome.results
    return session?.fields ? this.#others(use) : undefined
  }

  async #forget(digest: string, holder: string) {
    const outcome = await this.#store.transact(INDEX, [
      { sortedSet: `idle:${holder}`, remove: [digest] },
      { sortedSet: `of:${holder}`, remove: [digest] },
      { sortedSet: IDLE, remove: [`${digest} ${holder}`] },
    ])
    if (outcome.done) await this.#count([[holder, outcome.results[0]?.size ?? 0]])
  }

  async #count(sizes: ReadonlyArray<readonly [holder: string, size: number]>, most?: number) {
    const idle = sizes.filter(([, size]) => size > 0)
    await this.#store.transact(
      INDEX,
      [
        {
          sortedSet: HOLDERS,
          put: Object.fromEntries(idle),
          remove: sizes.flatMap(([holder, size]) => (size > 0 ? [] : [holder])),
          ...(most === undefined ? {} : { keep: Math.max(1, most) }),
        },
      ],
      'relaxed',
    )
  }

  async mark(uses: readonly SessionUse[], { idleTimeout, maxIdle }: SessionLimits): Promise<readonly Victim[]> {
    let excess = 0
    await this.#flushCompleted()
    for (let at = 0; at < Math.max(1, uses.length); at += MAX_MARKED) {
      const marks = uses.slice(at, at + MAX_MARKED).map(use => ({ ...use, owner: nameHolder(use.holder) }))
      excess = await this.#markSome(marks, idleTimeout, maxIdle)
    }
    return excess > 0 ? this.#evict(Math.min(excess, MAX_VICTIMS), idleTimeout) : []
  }

  /** Returns the number of idle sessions above `maxIdle`. */
  async #markSome(marks: readonly IdleMark[], ttl: number, maxIdle: number) {
    const [expired] = await this.#store.read(INDEX, [{ sortedSet: IDLE, to: { now: -ttl }, limit: EXPIRED_AT_ONCE }])
    const remove = expired.members.map(({ member }) => member)
    const put: Record<string, Score> = {}
    const byHolder = new Map<string, IdleMark[]>()
    for (const member of remove) byHolder.set(member.slice(member.indexOf(' ') + 1), [])
    for (const mark of marks) {
      const { digest, owner, inUse, ago } = mark
      const own = byHolder.get(owner)
      if (own) own.push(mark)
      else byHolder.set(owner, [mark])
      if (inUse) remove.push(`${digest} ${owner}`)
      else put[`${digest} ${owner}`] = { now: -ago }
    }
    const holders = [...byHolder]
    const outcome = await this.#store.transact(
      INDEX,
      [
        { sortedSet: IDLE, put, remove },
        ...holders.map(([holder, own]) => idleStep(holder, own, ttl)),
        ...holders.flatMap(([holder, own]) => (own.length > 0 ? [useStep(holder, own, ttl)] : [])),
      ],
      'relaxed',
    )
    if (!outcome.done) return 0
    const [idle, ...others] = outcome.results
    await this.#count(
      holders.map(([holder], index) => [holder, others[index]?.size ?? 0] as const),
      maxIdle,
    )
    await Promise.all(marks.map(({ digest, inUse }) => this.#noteUse(digest, inUse, ttl, outcome.now)))
    return (idle?.size ?? 0) - maxIdle
  }

  /** Stores that this node uses the session, or removes that entry if it was stored. */
  async #noteUse(digest: string, inUse: boolean, ttl: number, now: number) {
    if (!inUse && !this.#inUse.delete(digest)) return
    if (inUse) this.#inUse.add(digest)
    const use = `b:${this.node}`
    const step = inUse ? { set: { [use]: String(now + ttl) } } : { unset: [use] }
    const steps = [
      { record: SESSION, exists: true, ttl },
      { record: USE, ...step, ttl },
    ]
    try {
      await this.#store.transact(partitionOf(digest), steps, 'relaxed')
    } catch (err) {
      this.#log.debug({ err }, 'could not report the use of a session to the store')
    }
  }

  /** Removes idle sessions from the index, of the holders that have most. */
  async #evict(count: number, ttl: number): Promise<readonly Victim[]> {
    const [{ members }] = await this.#store.read(INDEX, [{ sortedSet: HOLDERS, reverse: true, limit: count + 1 }])
    const shares = shareOut(members, count)
    const chosen = await this.#store.read(
      INDEX,
      shares.map(([holder, limit]) => ({ sortedSet: `idle:${holder}`, limit })),
    )
    const victims = shares.flatMap(([holder], index) =>
      (chosen[index]?.members ?? []).map(({ member }) => ({ digest: member, holder })),
    )
    const of = (owner: string) => victims.flatMap(({ digest, holder }) => (holder === owner ? [digest] : []))
    const outcome = await this.#store.transact(INDEX, [
      { sortedSet: IDLE, remove: victims.map(({ digest, holder }) => `${digest} ${holder}`) },
      ...shares.map(([holder]) => ({ sortedSet: `idle:${holder}`, has: of(holder), remove: of(holder), ttl: 2 * ttl })),
    ])
    // Another node evicts them.
    if (!outcome.done) return []
    await this.#count(shares.map(([holder], index) => [holder, outcome.results[1 + index]?.size ?? 0] as const))
    return victims
  }

  async timeLeft(digest: string) {
    const [session] = await this.#store.read(partitionOf(digest), [{ record: SESSION }])
    return session?.expires === undefined ? undefined : session.expires - session.now
  }

  async restore(
    digest: string,
    record: SessionRecord,
    { requests, claim }: HeldHere,
    { idleTimeout: ttl }: SessionLimits,
  ) {
    for (;;) {
      const [session, use, { now }] = await this.#store.read(partitionOf(digest), [
        { record: SESSION },
        { record: USE },
        { sortedSet: CLOCK, limit: 0 },
      ])
      const { fields = {}, version = 0 } = use ?? {}
      const runs = requests.map(runKey).filter(key => fields[key] === undefined)
      const isNewer = claim && claim.epoch > Number(fields['streamEpoch'] ?? 0)
      const set = {
        [`n:${this.node}`]: '1',
        ...Object.fromEntries(runs.map(key => [key, this.node])),
        ...(isNewer ? { stream: claim.stream, streamNode: this.node, streamEpoch: String(claim.epoch) } : {}),
      }
      const newer = session && changesSince(session.fields, record)
      const restored = { ...writeRecord(record), restoredFrom: String(record.version), restoredAt: String(now) }
      const outcome = await this.#store.transact(partitionOf(digest), [
        { record: ENDED, exists: false },
        { record: SESSION, version: session?.version ?? 0, ...(session ? newer : { set: restored }), ttl, know: 0 },
        { record: USE, version, set, ttl, know: 0 },
      ])
      if (!outcome.done && outcome.step === 0) return undefined
      if (!outcome.done) continue
      if (!(await this.#admit(digest, nameHolder(record.opening.holder), ttl))) return undefined
      const [, kept = {}, copies] = outcome.results
      return { record: readRecord(kept), nodes: newer ? this.#others(copies) : [] }
    }
  }

  onReturn(listener: () => void) {
    this.#store.onReturn?.(() => {
      this.#recoveringUntil = performance.now() + RECOVERY_TIME
      listener()
    })
  }

  get isRecovering() {
    return performance.now() < this.#recoveringUntil
  }
}

function idleStep(holder: string, own: readonly IdleMark[], ttl: number): SetStep {
  const idle = own.filter(({ inUse }) => !inUse)
  return {
    sortedSet: `idle:${holder}`,
    below: { now: -ttl },
    put: Object.fromEntries(idle.map(({ digest, ago }) => [digest, { now: -ago }])),
    remove: own.flatMap(({ digest, inUse }) => (inUse ? [digest] : [])),
    ttl: 2 * ttl,
  }
}

const useStep = (holder: string, own: readonly IdleMark[], ttl: number): SetStep => ({
  sortedSet: `of:${holder}`,
  touch: Object.fromEntries(own.map(({ digest, ago }) => [digest, { now: -ago }])),
  ttl,
})

/** Computes the number of sessions that each holder loses. Holders with the most idle sessions lose first. */
function shareOut(
  holders: ReadonlyArray<{ readonly member: string; readonly score: number }>,
  count: number,
): ReadonlyArray<readonly [holder: string, sessions: number]> {
  const shares = holders.map(({ member, score }) => ({ holder: member, left: score, lost: 0 }))
  for (let taken = 0; taken < count; taken++) {
    const most = shares.reduce((one, other) => (other.left > one.left ? other : one), { holder: '', left: 0, lost: 0 })
    most.left--
    most.lost++
  }
  return shares.filter(({ lost }) => lost > 0).map(({ holder, lost }) => [holder, lost])
}

interface SessionStoreSettings {
  /** Bytes of the store. Default: no limit. */
  readonly maxSize?: number | undefined
  readonly node: string
  readonly log: Logger
}

export const createSessionStore = (store: Store, settings: SessionStoreSettings): SessionStore =>
  new StoredSessions(store, settings)
