// The task store in any store: one partition, changed by optimistic transactions.
// Sorted sets, with <h> for a holder and <q> for a queue:
//   ends             tasks by expiry                 all:<h>, open:<h>  tasks and open tasks of a holder
//   queues           queues by last use              queued:<q>         queued tasks by creation
//   turns:<q>        holders by turn; some may have no queued task      lane:<h>:<q>  queued tasks by serial
//   running:<q>, busy:<h>:<q>  running tasks         leases             running tasks by lease expiry
// Records: tasks (see task-fields.ts), bytes:<h> (bytes of a holder), sums (all bytes; the last serial or turn).
import { randomUUID } from 'node:crypto'
import { HostError } from '../../../core/index.ts'
import type { Members, RecordStep, SetStep, Step, Store } from '../../../core/store.ts'
import { ChangeLog, type ChangeSettings, changeStep, TASKS } from './task-changes.ts'
import {
  keyOf,
  nameOf,
  readFacts,
  readRequests,
  readTask,
  requestField,
  responseField,
  sizeOf,
  sizeOfRequest,
  sizeOfTask,
  type TaskFacts,
} from './task-fields.ts'
import {
  type ByteLimits,
  hasEnded,
  type NewTask,
  type QueueDepth,
  type QueueOffer,
  type ResponseLimits,
  SMALL_OUTCOME,
  shareOf,
  type TaskChange,
  type TaskEnd,
  type TaskLease,
  type TaskLimits,
  type TaskRecord,
  type TaskRefusal,
  type TaskRequest,
  type TaskState,
  type TaskSummary,
} from './task-store.ts'

/** Maximum bytes of all tasks in a shared store. */
const MAX_BYTES = 256 * 1_048_576
/** Maximum bytes of all tasks in a store in memory. */
const MEMORY_BYTES = 128 * 1_048_576
/** Maximum attempts of a change. Each failed attempt means that another change succeeded. */
const MAX_ATTEMPTS = 200
/** Maximum expired tasks to delete per search. */
const MAX_SWEPT = 100
const HOLDERS = 8
const MAX_QUEUES = 10_000
/** Remembered claims with an unknown outcome. */
const MAX_LOST = 100
/** Milliseconds within which a failure is a broken connection. */
const REPLY_TIME = 3_000
const RETRIES = 3
const WEEK = 7 * 86_400_000

/** Thrown if the store possibly made the change, but its reply was lost. */
class LostReply extends Error {
  constructor(cause: unknown) {
    super('the reply of the store was lost', { cause })
  }
}

/** Steps by name. The name identifies the condition that did not hold. */
type Plan = Readonly<Record<string, Step | undefined>>

interface FoundTask {
  readonly facts: TaskFacts
  readonly work: Readonly<Record<string, string>>
  /** The last serial or turn. */
  readonly serial: number
  readonly now: number
}

interface Change<Value> {
  readonly plan: Plan
  readonly state: TaskState
  readonly done: Value
  readonly failed?: (step: string) => void
}

const requireSpace = async (changing: Promise<boolean | TaskRefusal>): Promise<boolean> => {
  const done = await changing
  if (typeof done === 'boolean') return done
  throw new HostError('unavailable', { detail: 'the task log is full', headers: { 'Retry-After': '10' } })
}

const taskStep = ({ key, version }: TaskFacts, now: number, step: Partial<RecordStep>): RecordStep => ({
  record: `t:${key}`,
  where: { version: String(version) },
  ...step,
  set: { updated: String(now), ...step.set },
  add: { version: 1, ...step.add },
})

/**
 * Removes a task from its queue, or from the running ones. Changes of running tasks begin with a removal, so that a full database
 * can execute them.
 */
function leaveQueue({ id, holderKey, queueKey, state }: TaskFacts): Plan {
  const from = (sortedSet: string): SetStep => ({ sortedSet, remove: [id] })
  if (state === 'queued') return { lane: from(`lane:${holderKey}:${queueKey}`), queued: from(`queued:${queueKey}`) }
  if (state !== 'running') return {}
  return { running: from(`running:${queueKey}`), busy: from(`busy:${holderKey}:${queueKey}`), leases: from('leases') }
}

type PlacedTask = Pick<TaskFacts, 'id' | 'queue' | 'holderKey' | 'queueKey' | 'serial' | 'createdAt'>

/** `isWaiting`: whether the holder has a turn already. */
const enqueue = (task: PlacedTask, turn: number, isWaiting: boolean): Plan => ({
  lane: { sortedSet: `lane:${task.holderKey}:${task.queueKey}`, put: { [task.id]: task.serial } },
  queued: { sortedSet: `queued:${task.queueKey}`, put: { [task.id]: task.createdAt } },
  queues: { sortedSet: 'queues', put: { [task.queue]: { now: 0 } } },
  turn: {
    sortedSet: `turns:${task.queueKey}`,
    ...(isWaiting ? { has: [task.holderKey] } : { lacks: [task.holderKey], put: { [task.holderKey]: turn } }),
  },
})

/**
 * Stores tasks. Operations on one task are atomic, and acknowledged writes are durable. Expired tasks do not exist. Rejects with
 * a HostError `unavailable` if the store does not respond (the outcome is unknown) or is full (nothing is written). A run holds a
 * lease with a fence: `claim` and `claimLapsed` return it, `renew` extends it. `note`, `addRequest`, `release` and `end` return
 * false without the latest fence. An expired lease stays valid until the next claim.
 */
class Tasks {
  /** True if other nodes use the same store. `host`: only the workers of this host. */
  readonly shared
  readonly #store: Store
  readonly #changes: ChangeLog
  readonly #maxBytes: number
  readonly #lost = { claim: new Map<string, string>(), lapsed: new Map<string, string>() }
  #claiming: Promise<unknown> = Promise.resolve()
  /** Milliseconds, longer than the lifetime of any task. */
  #maxTtl = WEEK

  constructor(store: Store, changes: ChangeLog, mostBytes: number) {
    this.shared = store.shared
    this.#store = store
    this.#changes = changes
    this.#maxBytes = mostBytes
  }

  /** Reports every stored change on any node; undefined if changes may have been missed. Expiry is not reported. */
  readonly watch = (listener: (change: TaskChange | undefined) => void) => this.#changes.watch(listener)

  /** Queues a task behind the holder's other tasks. Idempotent for an existing id. */
  readonly create = (task: NewTask, limits: TaskLimits) => this.#persist(() => this.#create(task, limits))

  readonly get = async (id: string): Promise<TaskRecord | undefined> => {
    const key = keyOf(id)
    const [small, work, outcome] = await this.#store.read(TASKS, [
      { record: `t:${key}` },
      { record: `w:${key}` },
      { record: `o:${key}` },
    ])
    if (!small) return undefined
    const facts = readFacts(small.fields)
    return facts.until > small.now ? readTask(facts, work?.fields, outcome?.fields) : undefined
  }

  readonly getSummary = async (id: string): Promise<TaskSummary | undefined> => {
    const [small] = await this.#store.read(TASKS, [{ record: `t:${keyOf(id)}` }])
    const facts = small && readFacts(small.fields)
    return facts && facts.until > small.now ? facts.summary : undefined
  }

  /** Tasks of a holder, newest first. `before`: only smaller serials. */
  readonly list = (holder: string, most: number, before?: number): Promise<readonly TaskSummary[]> =>
    this.#page({ sortedSet: `all:${nameOf(holder)}`, ...(before !== undefined && { to: before - 1 }) }, most)

  /** Tasks of all holders, the last to expire first. For operators. */
  readonly listAll = (most: number): Promise<readonly TaskSummary[]> => this.#page({ sortedSet: 'ends' }, most)

  async #page(set: { readonly sortedSet: string; readonly to?: number }, most: number): Promise<TaskSummary[]> {
    for (;;) {
      const [{ members }] = await this.#store.read(TASKS, [{ ...set, reverse: true, limit: most }])
      const found = await this.#store.read(
        TASKS,
        members.map(({ member }) => ({ record: `t:${keyOf(member)}` })),
      )
      const alive = found.flatMap(small => {
        const facts = small && readFacts(small.fields)
        return facts && facts.until > small.now ? [facts.summary] : []
      })
      if (alive.length === members.length || !(await this.#sweep())) return alive
    }
  }

  /** Claims a queued task for `lease` milliseconds, from the first non-empty queue. Holders take turns in each queue. */
  readonly claim = (offers: readonly QueueOffer[], lease: number): Promise<TaskRecord | undefined> => {
    // Serializes the claims of this process, so that they do not conflict.
    const claiming = this.#claiming.then(
      async () => (await this.#claimLost(this.#lost.claim, lease)) ?? this.#claimNext(offers, lease),
    )
    this.#claiming = claiming.catch(() => undefined)
    return claiming
  }

  /** Claims a running task with an expired lease. `runs` does not change. */
  readonly claimLapsed = async (lease: number): Promise<TaskRecord | undefined> => {
    const lost = await this.#claimLost(this.#lost.lapsed, lease)
    if (lost) return lost
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const [{ members }] = await this.#store.read(TASKS, [{ sortedSet: 'leases', to: { now: 0 }, limit: 1 }])
      const id = members[0]?.member
      if (id === undefined) return undefined
      const found = await this.#find(id)
      if (!found) {
        await this.#drop(id)
        continue
      }
      const { fence, beats } = found.facts
      const where = { state: 'running', fence: String(fence), beats: String(beats) }
      const claimed = await this.#take(found.facts, lease, this.#lost.lapsed, found.now, where)
      if (typeof claimed === 'object') return claimed
    }
    return undefined
  }

  /** Returns the version of each task; undefined for a lost lease. */
  readonly renew = (leases: readonly TaskLease[], lease: number): Promise<ReadonlyArray<number | undefined>> =>
    Promise.all(leases.map(held => this.#renew(held, lease)))

  /** Requeues a task in front of the holder's other tasks. */
  readonly release = async (lease: TaskLease): Promise<boolean> => {
    let isWaiting = false
    return this.#change<boolean>(lease.id, false, ({ facts, now, serial }) => {
      // A repeated release has no other effect.
      if (facts.state === 'queued' && facts.fence === lease.fence) return true
      if (!isHeld(facts, lease)) return false
      const task = taskStep(facts, now, { set: { state: 'queued' }, unset: ['claim'] })
      const queued = enqueue(facts, serial + 1, isWaiting)
      const sums = { record: 'sums', add: { serial: 1 } }
      return {
        plan: { ...leaveQueue(facts), task, ...queued, sums },
        state: 'queued',
        done: true,
        failed: step => {
          if (step === 'turn') isWaiting = !isWaiting
        },
      }
    })
  }

  /** Rejects with `unavailable` if the store is full, like `addRequest`. */
  readonly note = (lease: TaskLease, note: string) =>
    requireSpace(
      this.#change<boolean | TaskRefusal>(lease.id, false, ({ facts, now }) => {
        if (!isHeld(facts, lease)) return false
        return this.#grow(facts, now, sizeOf(note) - sizeOf(facts.note), {}, { set: { note } })
      }),
    )

  /** Idempotent for an existing key. */
  readonly addRequest = (lease: TaskLease, request: Pick<TaskRequest, 'key' | 'text'>) =>
    requireSpace(
      this.#change<boolean | TaskRefusal>(lease.id, false, ({ facts, work, now }) => {
        if (!isHeld(facts, lease)) return false
        if (readRequests(facts, work).some(({ key }) => key === request.key)) return true
        const step = { record: `w:${facts.key}`, exists: true, set: requestField(facts.asked + 1, request) }
        const bytes = sizeOfRequest(request.key, request.text)
        return this.#grow(facts, now, bytes, {}, { add: { asked: 1, open: 1 } }, { work: step })
      }),
    )

  /** Stores responses to open requests and returns their number. All or nothing if space is short. */
  readonly addResponses = (id: string, responses: Readonly<Record<string, string>>, room: ResponseLimits = {}) =>
    this.#change<number | TaskRefusal | 'task'>(id, 0, ({ facts, work, now }, again) => {
      const requests = readRequests(facts, work)
      const taken = requests.flatMap(({ key, response }, index) =>
        response === undefined && Object.hasOwn(responses, key)
          ? [[responseField(index + 1), responses[key] ?? ''] as const]
          : [],
      )
      if (taken.length === 0 && !again) return 0
      if (taken.length === 0)
        return requests.filter(({ key, response }) => response !== undefined && response === responses[key]).length
      if (hasEnded(facts.state)) return 0
      const bytes = sizeOf(...taken.map(([, response]) => response))
      if (bytes + sizeOf(...requests.map(({ response }) => response)) > (room.bytesPerTask ?? Infinity)) return 'task'
      const step = { record: `w:${facts.key}`, exists: true, set: Object.fromEntries(taken) }
      const counts = { add: { open: -taken.length } }
      return { ...this.#grow(facts, now, bytes, room, counts, { work: step }), done: taken.length }
    })

  /**
   * Ends a task, which is kept for at least `ttl` more milliseconds. Idempotent for one fence. If the result does not fit,
   * nothing changes and the refusal is returned.
   */
  readonly end = (lease: TaskLease, { state, outcome }: TaskEnd, ttl: number, room: ByteLimits = {}) =>
    this.#change<boolean | TaskRefusal>(lease.id, false, ({ facts, now }) => {
      if (facts.fence !== lease.fence) return false
      if (hasEnded(facts.state)) return true
      if (facts.state !== 'running') return false
      this.#maxTtl = Math.max(this.#maxTtl, ttl + WEEK)
      const limits = sizeOf(outcome) > SMALL_OUTCOME ? room : undefined
      const until = Math.max(facts.until, now + Math.ceil(ttl))
      return { plan: this.#end(facts, now, { state, outcome, until, limits }), state, done: true }
    })

  /** False if the task has ended or does not exist. */
  readonly cancel = (id: string) =>
    this.#change<boolean>(id, false, ({ facts, now }, again) => {
      if (hasEnded(facts.state)) return again && facts.state === 'cancelled'
      const how = { state: 'cancelled', outcome: undefined, until: facts.until, limits: undefined } as const
      return { plan: this.#end(facts, now, how, { fence: 1 }), state: 'cancelled', done: true }
    })

  readonly depths = async (): Promise<readonly QueueDepth[]> => {
    await this.#sweep()
    const [{ members }] = await this.#store.read(TASKS, [{ sortedSet: 'queues', limit: MAX_QUEUES }])
    const queues = members.map(({ member }) => member)
    const sets = queues.flatMap(queue => [
      { sortedSet: `queued:${nameOf(queue)}`, limit: 1 },
      { sortedSet: `running:${nameOf(queue)}`, limit: 0 },
    ])
    const found: readonly Members[] = await this.#store.read(TASKS, sets)
    const depths: QueueDepth[] = []
    for (const [index, queue] of queues.entries()) {
      const [queued, running] = found.slice(2 * index, 2 * index + 2)
      if (!queued || !running) continue
      if (queued.size + running.size === 0) {
        await this.#store.transact(TASKS, [
          { sortedSet: `queued:${nameOf(queue)}`, most: 0 },
          { sortedSet: `running:${nameOf(queue)}`, most: 0 },
          { sortedSet: `turns:${nameOf(queue)}`, delete: true },
          { sortedSet: 'queues', remove: [queue] },
        ])
        continue
      }
      const waited = Math.max(0, queued.now - (queued.members[0]?.score ?? queued.now))
      depths.push({ queue, queued: queued.size, running: running.size, waited })
    }
    return depths
  }

  /** Everything but the large texts of tasks lasts longer than the tasks. */
  async #transact(steps: readonly Step[], durability?: 'relaxed') {
    const ttl = this.#maxTtl
    const lasting = steps.map(step => {
      if ('log' in step) return { ...step, ttl }
      if ('sortedSet' in step) return step.put ? { ...step, ttl } : step
      return step.delete || /^[wo]:/.test(step.record) ? step : { ...step, ttl }
    })
    const startedAt = performance.now()
    try {
      return await this.#store.transact(TASKS, lasting, durability)
    } catch (error) {
      const isLost = HostError.is(error) && error.kind === 'unavailable' && performance.now() - startedAt < REPLY_TIME
      throw isLost ? new LostReply(error) : error
    }
  }

  /** Repeats work after lost replies. `again`: an earlier attempt may have succeeded. */
  async #persist<Value>(work: (again: boolean) => Promise<Value>): Promise<Value> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work(attempt > 1)
      } catch (error) {
        if (!(error instanceof LostReply)) throw error
        if (attempt === RETRIES) throw error.cause
      }
    }
  }

  async #create(task: NewTask, limits: TaskLimits): Promise<'created' | TaskRefusal> {
    const { id, holder, owner, queue, body } = task
    const numbered = await this.#transact([{ record: 'sums', add: { serial: 1 }, know: 0 }])
    const serial = Number(numbered.done ? numbered.results[0]?.fields?.['serial'] : 0)
    const { now } = numbered
    const ttl = Math.max(1, Math.ceil(task.ttl))
    this.#maxTtl = Math.max(this.#maxTtl, ttl + WEEK)
    const [key, holderKey, queueKey, until] = [keyOf(id), nameOf(holder), nameOf(queue), now + ttl]
    const bytes = sizeOfTask(task) + sizeOf(body)
    const counts = { open: 0, version: 1, fence: 0, runs: 0, bytes, asked: 0, beats: 0 }
    const placed = { id, queue, holderKey, queueKey, serial, createdAt: now }
    const numbers = { serial, created: now, updated: now, until, ...counts }
    const fields = Object.fromEntries(Object.entries(numbers).map(([name, number]) => [name, String(number)]))
    let isWaiting = false
    let isSwept = false
    for (;;) {
      const failed = await this.#apply(
        {
          task: { record: `t:${key}`, exists: false, set: { id, holder, owner, queue, state: 'queued', ...fields } },
          all: { sortedSet: `all:${holderKey}`, most: limits.keptPerHolder - 1, put: { [id]: serial } },
          open: { sortedSet: `open:${holderKey}`, most: limits.openPerHolder - 1, put: { [id]: until } },
          ...this.#count(holderKey, bytes, limits),
          ends: { sortedSet: 'ends', most: limits.kept - 1, put: { [id]: until } },
          work: { record: `w:${key}`, set: { body }, ttl },
          ...enqueue(placed, serial, isWaiting),
        },
        { id, queue, state: 'queued' },
      )
      if (failed === undefined) return 'created'
      if (failed === 'turn') {
        isWaiting = !isWaiting
        continue
      }
      if (!isSwept && (await this.#sweep())) {
        isSwept = true
        continue
      }
      if (failed === 'task') return 'created'
      return failed === 'ends' || failed === 'allBytes' ? 'full' : 'holder'
    }
  }

  /** Applies the steps and reports the change. Returns the name of the step whose condition does not hold. */
  async #apply(plan: Plan, change: { id: string; queue: string; state: TaskState }): Promise<string | undefined> {
    const named = Object.entries(plan).flatMap(([name, step]) => (step ? [[name, step] as const] : []))
    const outcome = await this.#transact([...named.map(([, step]) => step), changeStep(change)])
    if (!outcome.done) return named[outcome.step]?.[0] ?? 'change'
    this.#changes.changed(outcome.results.at(-1)?.last ?? 0, change)
    return undefined
  }

  async #find(id: string): Promise<FoundTask | undefined> {
    const key = keyOf(id)
    const [small, work, sums] = await this.#store.read(TASKS, [
      { record: `t:${key}` },
      { record: `w:${key}` },
      { record: 'sums' },
    ])
    const facts = small && readFacts(small.fields)
    if (!facts || facts.until <= small.now) return undefined
    return { facts, work: work?.fields ?? {}, serial: Number(sums?.fields['serial'] ?? 0), now: small.now }
  }

  #change<Value>(
    id: string,
    missing: Value,
    decide: (found: FoundTask, again: boolean) => Change<Value> | Value,
  ): Promise<Value> {
    return this.#persist(async again => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const found = await this.#find(id)
        if (!found) return missing
        const change = decide(found, again)
        if (change === null || typeof change !== 'object' || !('plan' in change)) return change as Value
        const failed = await this.#apply(change.plan, { id, queue: found.facts.queue, state: change.state })
        if (failed === undefined) return change.done
        if (failed === 'holderBytes') return 'holder' as Value
        if (failed === 'allBytes') return 'full' as Value
        change.failed?.(failed)
      }
      throw new HostError('unavailable', { detail: 'the task changes too often at the moment; try again' })
    })
  }

  /** Counts bytes; `room` limits growth. */
  #count(holderKey: string, bytes: number, room: ByteLimits | undefined): Plan {
    if (bytes === 0) return {}
    const limit = (most: number) => (room && bytes > 0 ? { most: { bytes: most } } : {})
    const each = limit(shareOf(this.#maxBytes, room))
    return {
      holderBytes: { record: `bytes:${holderKey}`, add: { bytes }, ...each },
      allBytes: { record: 'sums', add: { bytes }, ...limit(this.#maxBytes) },
    }
  }

  #grow(
    facts: TaskFacts,
    now: number,
    bytes: number,
    room: ByteLimits,
    step: Pick<RecordStep, 'set' | 'add'>,
    more: Plan = {},
  ) {
    const task = taskStep(facts, now, { ...step, add: { bytes, ...step.add } })
    const plan = { task, ...more, ...this.#count(facts.holderKey, bytes, room) }
    return { plan, state: facts.state, done: true }
  }

  #end(
    facts: TaskFacts,
    now: number,
    { state, outcome, until, limits }: EndOfTask,
    add: Readonly<Record<string, number>> = {},
  ): Plan {
    const { id, key, holderKey } = facts
    const bytes = sizeOfTask(facts) + sizeOf(outcome)
    const set = { state, until: String(until), bytes: String(bytes), open: '0', asked: '0' }
    return {
      ...leaveQueue(facts),
      task: taskStep(facts, now, { set, unset: ['claim'], add }),
      work: { record: `w:${key}`, delete: true },
      outcome: outcome === undefined ? undefined : { record: `o:${key}`, set: { outcome }, ttl: until - now },
      ends: { sortedSet: 'ends', put: { [id]: until } },
      open: { sortedSet: `open:${holderKey}`, remove: [id] },
      ...this.#count(holderKey, bytes - facts.bytes, limits),
    }
  }

  async #renew({ id, fence }: TaskLease, lease: number): Promise<number | undefined> {
    const key = keyOf(id)
    const outcome = await this.#persist(() =>
      this.#transact(
        [
          leaseStep(id, lease),
          { record: `w:${key}`, exists: true },
          { record: `t:${key}`, where: { state: 'running', fence: String(fence) }, add: { beats: 1 }, know: 0 },
        ],
        'relaxed',
      ),
    )
    const facts = outcome.done ? readFacts(outcome.results[2]?.fields ?? {}) : undefined
    return facts && facts.until > outcome.now ? facts.version : undefined
  }

  /** Finds a claim whose reply was lost, but which possibly succeeded. No other node runs such a task. */
  async #claimLost(lost: Map<string, string>, lease: number): Promise<TaskRecord | undefined> {
    for (const [id, token] of lost) {
      const { facts, work } = (await this.#find(id)) ?? {}
      const isOurs = facts?.state === 'running' && facts.claim === token
      const renewed = isOurs && (await this.#renew(facts, lease)) !== undefined
      lost.delete(id)
      if (isOurs && renewed) return readTask(facts, work)
    }
    return undefined
  }

  async #claimNext(offers: readonly QueueOffer[], lease: number): Promise<TaskRecord | undefined> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS && offers.length > 0; attempt++) {
      const sets = offers.flatMap(({ queue }) => [
        { sortedSet: `turns:${nameOf(queue)}`, limit: HOLDERS },
        { sortedSet: `running:${nameOf(queue)}`, limit: 0 },
      ])
      const [sums, ...found] = await this.#store.read(TASKS, [{ record: 'sums' }, ...sets])
      let conflicted = false
      for (const [index, offer] of offers.entries()) {
        const [turns, running] = found.slice(2 * index, 2 * index + 2) as readonly Members[]
        if (!turns || !running || turns.size === 0 || running.size >= offer.running) continue
        const picked = await this.#pick(offer, turns, attempt)
        if (!picked) continue
        const claimed = await this.#takeFirst(picked, offer, lease, Number(sums?.fields['serial'] ?? 0), turns.now)
        if (typeof claimed === 'object') return claimed
        conflicted = true
        break
      }
      if (!conflicted) return undefined
    }
    return undefined
  }

  /** Returns the next holder that can run a task, and its first task. After a conflict, one of the following holders. */
  async #pick(offer: QueueOffer, first: Members, attempt: number): Promise<Picked | undefined> {
    const { queue, running, runningPerHolder } = offer
    let holders = first.members
    // An upper bound: more holders cannot use all running slots.
    const most = Math.ceil(running / Math.max(1, runningPerHolder)) + 1
    for (let from = 0; from < holders.length; from += HOLDERS) {
      const some = holders.slice(from, from + HOLDERS).map(({ member }) => member)
      const picked = await this.#pickFrom(some, offer, attempt)
      if (picked) return picked
      if (from === 0 && first.size > HOLDERS) {
        const [turns] = await this.#store.read(TASKS, [{ sortedSet: `turns:${nameOf(queue)}`, limit: most + HOLDERS }])
        holders = turns.members
      }
    }
    return undefined
  }

  async #pickFrom(holders: readonly string[], { queue, runningPerHolder }: QueueOffer, attempt: number) {
    const name = nameOf(queue)
    const sets = holders.flatMap(holder => [
      { sortedSet: `lane:${holder}:${name}`, limit: 2 + attempt },
      { sortedSet: `busy:${holder}:${name}`, limit: 0 },
    ])
    const found: readonly Members[] = await this.#store.read(TASKS, sets)
    const lanes = holders.map((holder, index) => {
      const [lane, busy] = found.slice(2 * index, 2 * index + 2)
      return { holder, tasks: (lane?.members ?? []).map(({ member }) => member), busy: busy?.size ?? 0 }
    })
    const idle = lanes.filter(({ tasks }) => tasks.length === 0).map(({ holder }) => holder)
    if (idle.length > 0) {
      await this.#store.transact(TASKS, [
        ...idle.map(holder => ({ sortedSet: `lane:${holder}:${name}`, most: 0 })),
        { sortedSet: `turns:${name}`, remove: idle },
      ])
    }
    const ready = lanes.filter(({ tasks, busy }) => tasks.length > 0 && busy < runningPerHolder)
    const lane = ready[randomBelow(Math.min(attempt + 1, ready.length))]
    if (!lane) return undefined
    const id = lane.tasks[randomBelow(Math.min(attempt + 1, lane.tasks.length))] ?? ''
    return { holder: lane.holder, id, next: lane.tasks.findLast(other => other !== id) }
  }

  async #takeFirst({ holder, id, next }: Picked, offer: QueueOffer, lease: number, serial: number, now: number) {
    const { queue, running, runningPerHolder } = offer
    const name = nameOf(queue)
    const turns = { sortedSet: `turns:${name}` }
    const more = [
      {
        sortedSet: `lane:${holder}:${name}`,
        remove: [id],
        ...(next === undefined ? { has: [id], most: 1 } : { has: [id, next] }),
      },
      next === undefined ? { ...turns, remove: [holder] } : { ...turns, put: { [holder]: serial + 1 } },
      { sortedSet: `queued:${name}`, remove: [id] },
      { sortedSet: `running:${name}`, most: running - 1, put: { [id]: 0 } },
      { sortedSet: `busy:${holder}:${name}`, most: runningPerHolder - 1, put: { [id]: 0 } },
      { record: 'sums', add: { serial: 1 } },
    ]
    return this.#take({ id, queue }, lease, this.#lost.claim, now, { state: 'queued' }, more)
  }

  async #take(
    { id, queue }: Pick<TaskSummary, 'id' | 'queue'>,
    lease: number,
    lost: Map<string, string>,
    now: number,
    where: NonNullable<RecordStep['where']>,
    more: readonly Step[] = [],
  ): Promise<TaskRecord | false> {
    const key = keyOf(id)
    const claim = randomUUID()
    const change = { id, queue, state: 'running' } as const
    const add = { version: 1, fence: 1, runs: more.length > 0 ? 1 : 0 }
    const steps: readonly Step[] = [
      leaseStep(id, lease),
      { record: `w:${key}`, exists: true, know: 0 },
      { record: `t:${key}`, where, set: { state: 'running', updated: String(now), claim }, add, know: 0 },
      changeStep(change),
      ...more,
    ]
    try {
      const outcome = await this.#transact(steps)
      if (outcome.done) {
        const [, work, small, log] = outcome.results
        this.#changes.changed(log?.last ?? 0, change)
        const facts = readFacts(small?.fields ?? {})
        if (facts.until > outcome.now) return readTask(facts, work?.fields)
        await this.#drop(id)
        return false
      }
      // The body of an expired task is gone.
      if (outcome.step === 1) await this.#drop(id)
      return false
    } catch (error) {
      if (lost.size < MAX_LOST) lost.set(id, claim)
      throw error instanceof LostReply ? error.cause : error
    }
  }

  async #sweep(): Promise<boolean> {
    for (let found = false; ; found = true) {
      const [{ members }] = await this.#store.read(TASKS, [{ sortedSet: 'ends', to: { now: 0 }, limit: MAX_SWEPT }])
      if (members.length === 0) return found
      for (const { member } of members) await this.#drop(member)
    }
  }

  async #drop(id: string): Promise<void> {
    const key = keyOf(id)
    const remove = [id]
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const [small] = await this.#store.read(TASKS, [{ record: `t:${key}` }])
      const facts = small && readFacts(small.fields)
      if (facts && facts.until > small.now) return
      const plan: Plan = facts
        ? {
            task: { record: `t:${key}`, where: { version: String(facts.version) }, delete: true },
            work: { record: `w:${key}`, delete: true },
            outcome: { record: `o:${key}`, delete: true },
            ends: { sortedSet: 'ends', remove },
            all: { sortedSet: `all:${facts.holderKey}`, remove },
            open: { sortedSet: `open:${facts.holderKey}`, remove },
            ...leaveQueue(facts),
            ...this.#count(facts.holderKey, -facts.bytes, undefined),
          }
        : {
            task: { record: `t:${key}`, exists: false },
            ends: { sortedSet: 'ends', remove },
            leases: { sortedSet: 'leases', remove },
          }
      const steps = Object.values(plan).flatMap(step => (step ? [step] : []))
      if (!(await this.#store.transact(TASKS, steps)).done) continue
      if (facts) {
        const counted = { record: `bytes:${facts.holderKey}`, where: { bytes: '0' }, delete: true }
        await this.#store.transact(TASKS, [counted])
      }
      return
    }
  }
}

interface EndOfTask {
  readonly state: TaskState
  readonly outcome: string | undefined
  readonly until: number
  readonly limits: ByteLimits | undefined
}

interface Picked {
  readonly holder: string
  readonly id: string
  /** Another queued task of the holder, the last of those read, because other nodes claim the first. */
  readonly next: string | undefined
}

const randomBelow = (limit: number) => Math.floor(Math.random() * limit)

const leaseStep = (id: string, lease: number): SetStep => ({
  sortedSet: 'leases',
  remove: [id],
  put: { [id]: { now: Math.ceil(lease) } },
})

const isHeld = ({ state, fence }: TaskFacts, lease: TaskLease) => state === 'running' && fence === lease.fence

export type TaskStore = Pick<Tasks, keyof Tasks>

export interface TaskStoreSettings extends ChangeSettings {
  /** Bytes of all tasks. Above it tasks can only end with a small outcome. */
  readonly mostBytes?: number | undefined
}

export const createTaskStore = (store: Store, { mostBytes, ...parts }: TaskStoreSettings): TaskStore =>
  new Tasks(store, new ChangeLog(store, parts), mostBytes ?? (store.shared ? MAX_BYTES : MEMORY_BYTES))
