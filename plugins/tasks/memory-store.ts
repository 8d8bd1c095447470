// The in-memory task store, default of the slot `taskStore`. Queues are fair between holders.
import { HostError } from '../../core/index.ts'
import {
  FairQueue,
  hasEnded,
  type NewTask,
  type Queued,
  type QueueOffer,
  SMALL_OUTCOME,
  shareOf,
  type TaskEnd,
  type TaskLease,
  type TaskNews,
  type TaskQuestion,
  type TaskRecord,
  type TaskRefusal,
  type TaskRoom,
  type TaskState,
  type TaskStore,
  type TaskSummary,
} from '../../core/transport.ts'

/** Maximum bytes of texts. Above it no task begins, and running ones can only end with a small outcome. */
const MAX_BYTES = 128 * 1_048_576
/** Milliseconds between two searches for expired tasks. */
const SWEEP_INTERVAL = 1_000
/** Overhead of a task, bytes. */
const TASK_COST = 600

const bytesOf = (text = ''): number => (Buffer.byteLength(text) === text.length ? 1 : 2) * text.length

const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0)

class Task implements Queued {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  returns = false
  readonly id: string
  readonly holder: string
  readonly owner: string
  readonly queue: string
  readonly serial: number
  readonly createdAt: number
  readonly questions = new Map<string, TaskQuestion>()
  state: TaskState = 'queued'
  updatedAt: number
  until: number
  leasedUntil = 0
  version = 1
  fence = 0
  runs = 0
  bytes: number
  body: string
  note: string | undefined
  outcome: string | undefined

  constructor({ id, holder, owner, queue, ttl, body }: NewTask, serial: number, now: number) {
    this.id = id
    this.holder = holder
    this.owner = owner
    this.queue = queue
    this.body = body
    this.serial = serial
    this.createdAt = now
    this.updatedAt = now
    this.until = now + ttl
    this.bytes = this.small + bytesOf(body)
  }

  get small(): number {
    return TASK_COST + sum([this.id, this.holder, this.owner, this.queue, this.note].map(bytesOf))
  }

  get answered(): number {
    return sum([...this.questions.values()].map(({ answer = '' }) => Buffer.byteLength(answer)))
  }

  summary(): TaskSummary {
    const { id, holder, owner, queue, serial, state, createdAt, updatedAt, until, version, fence, runs, note } = this
    const open = [...this.questions.values()].filter(({ answer }) => answer === undefined).length
    const summary = { id, holder, owner, queue, serial, state, createdAt, updatedAt, until, version, fence, runs, open }
    return note === undefined ? summary : { ...summary, note }
  }

  record(): TaskRecord {
    const { body, questions, outcome } = this
    const whole = { ...this.summary(), body, questions: [...questions.values()] }
    return outcome === undefined ? whole : { ...whole, outcome }
  }
}

interface Holder {
  readonly tasks: Set<Task>
  bytes: number
}

class MemoryTaskStore implements TaskStore {
  readonly shared = false
  readonly #tasks = new Map<string, Task>()
  readonly #holders = new Map<string, Holder>()
  readonly #queues = new Map<string, FairQueue<Task>>()
  readonly #running = new Set<Task>()
  readonly #listeners = new Set<(news: TaskNews | undefined) => void>()
  readonly #maxBytes: number
  readonly #now: () => number
  #bytes = 0
  #serial = 0
  #sweepAt = Number.NEGATIVE_INFINITY

  constructor(maxBytes: number, now: () => number) {
    this.#maxBytes = maxBytes
    this.#now = now
  }

  create: TaskStore['create'] = async (task, bounds) => {
    this.#sweep()
    if (this.#tasks.has(task.id)) return 'created'
    const holder = this.#holders.get(task.holder) ?? { tasks: new Set(), bytes: 0 }
    if (holder.tasks.size >= bounds.keptPerHolder) return 'holder'
    if ([...holder.tasks].filter(({ state }) => !hasEnded(state)).length >= bounds.openPerHolder) return 'holder'
    const made = new Task(task, ++this.#serial, this.#now())
    const refusal = this.#refusalOf(task.holder, made.bytes, bounds)
    if (refusal) return refusal
    if (this.#tasks.size >= bounds.kept) return 'full'
    holder.tasks.add(made)
    this.#tasks.set(task.id, made)
    this.#holders.set(task.holder, holder)
    this.#count(made, made.bytes)
    this.#enqueue(made)
    this.#notify(made)
    return 'created'
  }

  get: TaskStore['get'] = async id => this.#find(id)?.record()

  look: TaskStore['look'] = async id => this.#find(id)?.summary()

  list: TaskStore['list'] = async (holder, most, before = Number.POSITIVE_INFINITY) => {
    this.#sweep()
    const own = [...(this.#holders.get(holder)?.tasks ?? [])].reverse().filter(({ serial }) => serial < before)
    return own.slice(0, most).map(task => task.summary())
  }

  claim: TaskStore['claim'] = async (offers, lease) => {
    for (const offer of offers) {
      for (let task = this.#take(offer); task; task = this.#take(offer)) {
        if (this.#find(task.id)) return this.#begin(task, lease, 1)
      }
    }
    return undefined
  }

  claimLapsed: TaskStore['claimLapsed'] = async lease => {
    this.#sweep()
    const now = this.#now()
    for (const task of this.#running) if (task.leasedUntil <= now) return this.#begin(task, lease, 0)
    return undefined
  }

  renew: TaskStore['renew'] = async (leases, lease) =>
    leases.map(held => {
      const task = this.#held(held)
      if (task) task.leasedUntil = this.#now() + lease
      return task?.version
    })

  release: TaskStore['release'] = async held =>
    this.#write(held, task => {
      task.state = 'queued'
      this.#dequeue(task)
      task.returns = true
      this.#enqueue(task)
    })

  note: TaskStore['note'] = async (held, note) =>
    this.#write(held, task => {
      this.#grow(task, bytesOf(note) - bytesOf(task.note))
      task.note = note
    })

  ask: TaskStore['ask'] = async (held, { key, text }) => {
    if (this.#held(held)?.questions.has(key)) return true
    return this.#write(held, task => {
      this.#grow(task, bytesOf(key) + bytesOf(text))
      task.questions.set(key, { key, text })
    })
  }

  end: TaskStore['end'] = async (held, { state, outcome }, ttl, room) => {
    const known = this.#find(held.id)
    if (known && known.fence === held.fence && hasEnded(known.state)) return true
    const task = this.#held(held)
    if (task && Buffer.byteLength(outcome ?? '') > SMALL_OUTCOME) {
      const refusal = this.#refusalOf(task.holder, task.small + bytesOf(outcome) - task.bytes, room)
      if (refusal) return refusal
    }
    return this.#write(held, ended => {
      this.#end(ended, state, outcome)
      ended.until = Math.max(ended.until, this.#now() + ttl)
    })
  }

  answer: TaskStore['answer'] = async (id, answers, room) => {
    const task = this.#find(id)
    if (!task || hasEnded(task.state)) return 0
    const open = Object.entries(answers).flatMap(([key, answer]) => {
      const question = task.questions.get(key)
      return question && question.answer === undefined ? [{ ...question, answer }] : []
    })
    if (open.length === 0) return 0
    const added = sum(open.map(({ answer }) => Buffer.byteLength(answer)))
    if (task.answered + added > (room?.bytesPerTask ?? Number.POSITIVE_INFINITY)) return 'task'
    const bytes = sum(open.map(({ answer }) => bytesOf(answer)))
    const refusal = this.#refusalOf(task.holder, bytes, room)
    if (refusal) return refusal
    for (const question of open) task.questions.set(question.key, question)
    this.#count(task, bytes)
    task.bytes += bytes
    this.#changed(task)
    return open.length
  }

  cancel: TaskStore['cancel'] = async id => {
    const task = this.#find(id)
    if (!task || hasEnded(task.state)) return false
    this.#end(task, 'cancelled', undefined)
    task.fence++
    this.#changed(task)
    return true
  }

  depths: TaskStore['depths'] = async () => {
    this.#sweep()
    const depths = new Map(
      [...this.#queues].map(([queue, { size, places }]) => [
        queue,
        { queue, queued: size, running: places, waited: 0 },
      ]),
    )
    const now = this.#now()
    for (const { queue, linked, createdAt } of this.#tasks.values()) {
      const depth = depths.get(queue)
      if (linked && depth) depth.waited ||= now - createdAt
    }
    return [...depths.values()]
  }

  watch: TaskStore['watch'] = tell => {
    // A new function, so that one listener can watch twice.
    const listener = (news: TaskNews | undefined) => tell(news)
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #enqueue(task: Task) {
    const tasks = this.#queues.get(task.queue) ?? new FairQueue<Task>()
    this.#queues.set(task.queue, tasks)
    tasks.add(task.holder, task)
  }

  #take({ queue, running, runningPerHolder }: QueueOffer): Task | undefined {
    const tasks = this.#queues.get(queue)
    if (!tasks || tasks.places >= running) return undefined
    const task = tasks.next(({ holder }) => tasks.placesOf(holder) < runningPerHolder)
    if (!task) return undefined
    tasks.delete(task.holder, task)
    tasks.take(task.holder)
    this.#running.add(task)
    return task
  }

  #dequeue(task: Task) {
    const tasks = this.#queues.get(task.queue)
    if (this.#running.delete(task)) tasks?.leave(task.holder)
    else tasks?.delete(task.holder, task)
    if (tasks?.size === 0 && tasks.places === 0) this.#queues.delete(task.queue)
  }

  #refusalOf(holder: string, bytes: number, room?: TaskRoom): TaskRefusal | undefined {
    if (bytes <= 0) return undefined
    if ((this.#holders.get(holder)?.bytes ?? 0) + bytes > shareOf(this.#maxBytes, room)) return 'holder'
    return this.#bytes + bytes > this.#maxBytes ? 'full' : undefined
  }

  #count({ holder }: Task, bytes: number) {
    this.#bytes += bytes
    const own = this.#holders.get(holder)
    if (own) own.bytes += bytes
  }

  #grow(task: Task, bytes: number) {
    if (this.#refusalOf(task.holder, bytes)) {
      const detail = 'there is no room for what the task says'
      throw new HostError('unavailable', { detail, headers: { 'Retry-After': '10' } })
    }
    task.bytes += bytes
    this.#count(task, bytes)
  }

  #begin(task: Task, lease: number, runs: number): TaskRecord {
    task.returns = false
    task.state = 'running'
    task.leasedUntil = this.#now() + lease
    task.fence++
    task.runs += runs
    this.#changed(task)
    return task.record()
  }

  #end(task: Task, state: TaskEnd['state'], outcome: string | undefined) {
    this.#dequeue(task)
    const bytes = task.small + bytesOf(outcome)
    this.#count(task, bytes - task.bytes)
    task.bytes = bytes
    task.state = state
    task.outcome = outcome
    task.body = ''
    task.questions.clear()
  }

  #held({ id, fence }: TaskLease): Task | undefined {
    const task = this.#find(id)
    return task?.fence === fence && task.state === 'running' ? task : undefined
  }

  #write(held: TaskLease, change: (task: Task) => void): boolean {
    const task = this.#held(held)
    if (!task) return false
    change(task)
    this.#changed(task)
    return true
  }

  #changed(task: Task) {
    task.version++
    task.updatedAt = Math.max(task.updatedAt, this.#now())
    this.#notify(task)
  }

  #notify({ id, queue, state }: Task) {
    for (const listener of this.#listeners) listener({ id, queue, state })
  }

  #find(id: string): Task | undefined {
    const task = this.#tasks.get(id)
    if (!task || task.until > this.#now()) return task
    this.#drop(task)
    return undefined
  }

  #drop(task: Task) {
    this.#tasks.delete(task.id)
    this.#dequeue(task)
    this.#count(task, -task.bytes)
    const own = this.#holders.get(task.holder)
    own?.tasks.delete(task)
    if (own?.tasks.size === 0) this.#holders.delete(task.holder)
  }

  #sweep() {
    const now = this.#now()
    if (now < this.#sweepAt) return
    this.#sweepAt = now + SWEEP_INTERVAL
    for (const task of [...this.#tasks.values()]) if (task.until <= now) this.#drop(task)
  }
}

/** `maxBytes`: of texts; `now`: milliseconds since the epoch. */
export const createMemoryTaskStore = (maxBytes = MAX_BYTES, now: () => number = Date.now): TaskStore =>
  new MemoryTaskStore(maxBytes, now)
