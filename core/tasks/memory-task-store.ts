// The default of the slot `taskStore`: in this process, gone with it, and bounded.
import { HostError } from '../http/errors.ts'
import { bytesOf, MemoryTask, type MemoryTaskPlaces, questionCost, summaryOf } from './memory-task.ts'
import { createLines } from './task-lines.ts'
import {
  hasEnded,
  SMALL_OUTCOME,
  shareOf,
  type TaskLease,
  type TaskNews,
  type TaskRecord,
  type TaskRefusal,
  type TaskRoom,
  type TaskStore,
} from './task-store.ts'

const MIB = 1_048_576
/** Bytes of texts: past it no task begins, and those that have begun end with little. */
const MOST_BYTES = 128 * MIB
/** The tasks of one holder. */
interface Own {
  readonly tasks: Set<MemoryTask>
  bytes: number
}

const noRoom = () =>
  new HostError('unavailable', {
    detail: 'there is no room for what the task says',
    headers: { 'Retry-After': '10' },
  })

/** Milliseconds between two looks through all of them for those that are past their time. */
const SWEEP_EVERY = 1_000

class MemoryTaskStore {
  readonly #tasks = new Map<string, MemoryTask>()
  readonly #holders = new Map<string, Own>()
  readonly #lines = createLines<MemoryTask>()
  readonly #listeners = new Set<(news: TaskNews | undefined) => void>()
  readonly #mostBytes: number
  readonly #now: () => number
  readonly #places: MemoryTaskPlaces
  #bytes = 0
  #serial = 0
  #swept = Number.NEGATIVE_INFINITY

  constructor(mostBytes: number, now: () => number) {
    this.#mostBytes = mostBytes
    this.#now = now
    this.#places = {
      now,
      grown: ({ holder }, bytes) => {
        this.#bytes += bytes
        const own = this.#holders.get(holder)
        if (own) own.bytes += bytes
      },
    }
  }

  create: TaskStore['create'] = async (task, bounds) => {
    const { openPerHolder, keptPerHolder, kept } = bounds
    this.#sweep()
    if (this.#tasks.has(task.id)) return 'created'
    const own = this.#holders.get(task.holder) ?? { tasks: new Set(), bytes: 0 }
    if (own.tasks.size >= keptPerHolder) return 'holder'
    if (count(own.tasks, ({ state }) => !hasEnded(state)) >= openPerHolder) return 'holder'
    const made = new MemoryTask(task, ++this.#serial, this.#places)
    const refusal = this.#refusalOf(task.holder, made.bytes, bounds)
    if (refusal) return refusal
    if (this.#tasks.size >= kept) return 'full'
    this.#bytes += made.bytes
    own.bytes += made.bytes
    own.tasks.add(made)
    this.#tasks.set(task.id, made)
    this.#holders.set(task.holder, own)
    this.#lines.add(made)
    this.#tell(made)
    return 'created'
  }

  get: TaskStore['get'] = async id => this.#find(id)?.record()

  look: TaskStore['look'] = async id => {
    const task = this.#find(id)
    return task && summaryOf(task)
  }

  list: TaskStore['list'] = async (holder, most, before = Number.POSITIVE_INFINITY) => {
    this.#sweep()
    const own = [...(this.#holders.get(holder)?.tasks ?? [])].reverse().filter(({ serial }) => serial < before)
    return own.slice(0, most).map(summaryOf)
  }

  claim: TaskStore['claim'] = async (offers, lease) => {
    for (const offer of offers) {
      for (;;) {
        const task = this.#lines.take(offer)
        if (!task) break
        // One whose time is over is given to nobody.
        if (this.#find(task.id)) return this.#begin(task, lease, 1)
      }
    }
    return undefined
  }

  claimLapsed: TaskStore['claimLapsed'] = async lease => {
    this.#sweep()
    const now = this.#now()
    for (const task of this.#lines.running()) if (task.leasedUntil <= now) return this.#begin(task, lease, 0)
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
      this.#lines.putBack(task)
    })

  note: TaskStore['note'] = async (held, note) => {
    const task = this.#held(held)
    if (task) this.#demandRoom(task, task.growthBySaying(note))
    return this.#write(held, ours => ours.say(note))
  }

  ask: TaskStore['ask'] = async (held, { key, text }) => {
    const task = this.#held(held)
    if (task?.questionOf(key)) return true
    if (task) this.#demandRoom(task, questionCost(key, text))
    return this.#write(held, ours => ours.ask(key, text))
  }

  end: TaskStore['end'] = async (held, { state, outcome }, ttl, room) => {
    const known = this.#find(held.id)
    if (known && known.fence === held.fence && hasEnded(known.state)) return true
    const task = this.#held(held)
    const isSmall = Buffer.byteLength(outcome ?? '') <= SMALL_OUTCOME
    const refusal = task && !isSmall && this.#refusalOf(task.holder, task.growthByEnding(outcome), room)
    if (refusal) return refusal
    return this.#write(held, task => {
      this.#lines.remove(task)
      task.end(state, outcome)
      task.until = Math.max(task.until, this.#now() + ttl)
    })
  }

  answer: TaskStore['answer'] = async (id, answers, room) => {
    const task = this.#find(id)
    if (!task || hasEnded(task.state)) return 0
    const taken = Object.entries(answers).filter(([key]) => {
      const question = task.questionOf(key)
      return question !== undefined && question.answer === undefined
    })
    if (taken.length === 0) return 0
    const sum = (of: (text: string) => number) => taken.reduce((bytes, [, answer]) => bytes + of(answer), 0)
    if (task.answered + sum(Buffer.byteLength) > (room?.bytesPerTask ?? Number.POSITIVE_INFINITY)) return 'task'
    const refusal = this.#refusalOf(task.holder, sum(bytesOf), room)
    if (refusal) return refusal
    for (const [key, answer] of taken) task.answer(key, answer)
    this.#changed(task)
    return taken.length
  }

  cancel: TaskStore['cancel'] = async id => {
    const task = this.#find(id)
    if (!task || hasEnded(task.state)) return false
    this.#lines.remove(task)
    task.end('cancelled')
    task.fence++
    this.#changed(task)
    return true
  }

  depths: TaskStore['depths'] = async () => {
    this.#sweep()
    const now = this.#now()
    return this.#lines
      .depths()
      .map(({ oldest, ...depth }) => ({ ...depth, waited: oldest ? now - oldest.createdAt : 0 }))
  }

  watch: TaskStore['watch'] = tell => {
    // Of its own, so that one function may watch twice.
    const listener = (news: TaskNews | undefined) => tell(news)
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Why there is no room for so many bytes more of this holder; undefined where there is. */
  #refusalOf(holder: string, bytes: number, room?: TaskRoom): TaskRefusal | undefined {
    if (bytes <= 0) return undefined
    if ((this.#holders.get(holder)?.bytes ?? 0) + bytes > shareOf(this.#mostBytes, room)) return 'holder'
    return this.#bytes + bytes > this.#mostBytes ? 'full' : undefined
  }

  #demandRoom({ holder }: MemoryTask, bytes: number) {
    if (this.#refusalOf(holder, bytes)) throw noRoom()
  }

  #begin(task: MemoryTask, lease: number, runs: number): TaskRecord {
    task.begin(this.#now() + lease, runs)
    this.#changed(task)
    return task.record()
  }

  /** For the fence of the last claim, of a task that runs. */
  #held({ id, fence }: TaskLease): MemoryTask | undefined {
    const task = this.#find(id)
    return task?.fence === fence && task.state === 'running' ? task : undefined
  }

  #write(held: TaskLease, change: (task: MemoryTask) => void): boolean {
    const task = this.#held(held)
    if (!task) return false
    change(task)
    this.#changed(task)
    return true
  }

  #changed(task: MemoryTask) {
    task.changed()
    this.#tell(task)
  }

  #tell({ id, queue, state }: MemoryTask) {
    for (const listener of this.#listeners) listener({ id, queue, state })
  }

  #find(id: string): MemoryTask | undefined {
    const task = this.#tasks.get(id)
    if (!task || task.until > this.#now()) return task
    this.#drop(task)
    return undefined
  }

  #drop(task: MemoryTask) {
    this.#tasks.delete(task.id)
    this.#lines.remove(task)
    this.#bytes -= task.bytes
    const own = this.#holders.get(task.holder)
    if (!own) return
    own.bytes -= task.bytes
    own.tasks.delete(task)
    if (own.tasks.size === 0) this.#holders.delete(task.holder)
  }

  #sweep() {
    const now = this.#now()
    if (now < this.#swept + SWEEP_EVERY) return
    this.#swept = now
    for (const task of [...this.#tasks.values()]) if (task.until <= now) this.#drop(task)
  }
}

function count<Value>(values: Iterable<Value>, fits: (value: Value) => boolean): number {
  let found = 0
  for (const value of values) if (fits(value)) found++
  return found
}

/** `mostBytes` of texts, and `now`: milliseconds since the epoch; for tests. */
export function createMemoryTaskStore(mostBytes = MOST_BYTES, now: () => number = Date.now): TaskStore {
  const { create, get, look, list, claim, claimLapsed, renew, ...rest } = new MemoryTaskStore(mostBytes, now)
  const { release, note, ask, end, answer, cancel, depths, watch } = rest
  const reads = { get, look, list, depths, watch }
  const runs = { claim, claimLapsed, renew, release, note, ask, end }
  return { shared: false, create, answer, cancel, ...reads, ...runs }
}
