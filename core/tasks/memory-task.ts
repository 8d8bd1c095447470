// One task in the memory of this process, for memory-task-store.ts.
import type { NewTask, TaskEnd, TaskQuestion, TaskRecord, TaskState, TaskSummary } from './task-store.ts'

/** What a task costs beside its texts, bytes. */
const TASK_COST = 600

/** Two a character as soon as one of them is not ASCII. */
export const bytesOf = (text = ''): number => (Buffer.byteLength(text) === text.length ? 1 : 2) * text.length

const addBytes = (sum: number, text: string | undefined): number => sum + bytesOf(text)

/** What a question costs, bytes. */
export const questionCost = (key: string, text: string): number => bytesOf(key) + bytesOf(text)

/** What a task is told by its store, and tells it. */
export interface MemoryTaskPlaces {
  readonly now: () => number
  /** This one, by so many bytes. */
  readonly grown: (task: MemoryTask, bytes: number) => void
}

export class MemoryTask {
  readonly id: string
  readonly holder: string
  readonly owner: string
  readonly queue: string
  readonly serial: number
  readonly createdAt: number
  readonly #places: MemoryTaskPlaces
  readonly #questions = new Map<string, TaskQuestion>()
  state: TaskState = 'queued'
  updatedAt: number
  until: number
  leasedUntil = 0
  version = 1
  fence = 0
  runs = 0
  bytes: number
  #body: string
  #note: string | undefined
  #outcome: string | undefined

  constructor({ id, holder, owner, queue, ttl, body }: NewTask, serial: number, places: MemoryTaskPlaces) {
    this.id = id
    this.holder = holder
    this.owner = owner
    this.queue = queue
    this.#body = body
    this.serial = serial
    this.#places = places
    this.createdAt = places.now()
    this.updatedAt = this.createdAt
    this.until = this.createdAt + ttl
    this.bytes = this.#small + bytesOf(body)
  }

  /** Bytes of what is kept to the last. */
  get #small(): number {
    return TASK_COST + [this.id, this.holder, this.owner, this.queue, this.#note].reduce(addBytes, 0)
  }

  get note(): string | undefined {
    return this.#note
  }

  begin(leasedUntil: number, runs: number) {
    this.state = 'running'
    this.leasedUntil = leasedUntil
    this.fence++
    this.runs += runs
  }

  /** By how many bytes it grows where it says this. */
  growthBySaying(note: string): number {
    return bytesOf(note) - bytesOf(this.#note)
  }

  say(note: string) {
    this.#grow(this.growthBySaying(note))
    this.#note = note
  }

  get open(): number {
    return [...this.#questions.values()].filter(({ answer }) => answer === undefined).length
  }

  questionOf(key: string): TaskQuestion | undefined {
    return this.#questions.get(key)
  }

  ask(key: string, text: string) {
    this.#questions.set(key, { key, text })
    this.#grow(questionCost(key, text))
  }

  /** Bytes of the answers to it. */
  get answered(): number {
    return [...this.#questions.values()].reduce((sum, { answer = '' }) => sum + Buffer.byteLength(answer), 0)
  }

  /** Of a question without one. */
  answer(key: string, answer: string) {
    const question = this.#questions.get(key)
    if (!question) return
    this.#questions.set(key, { ...question, answer })
    this.#grow(bytesOf(answer))
  }

  /** By how many bytes it grows where it ends like this. */
  growthByEnding(outcome?: string): number {
    return this.#small + bytesOf(outcome) - this.bytes
  }

  end(state: TaskEnd['state'], outcome?: string) {
    this.#grow(this.growthByEnding(outcome))
    this.state = state
    this.#outcome = outcome
    this.#body = ''
    this.#questions.clear()
  }

  changed() {
    this.version++
    this.updatedAt = Math.max(this.updatedAt, this.#places.now())
  }

  record(): TaskRecord {
    const outcome = this.#outcome
    const whole = { ...summaryOf(this), body: this.#body, questions: [...this.#questions.values()] }
    return outcome === undefined ? whole : { ...whole, outcome }
  }

  #grow(bytes: number) {
    this.bytes += bytes
    this.#places.grown(this, bytes)
  }
}

export function summaryOf(task: MemoryTask): TaskSummary {
  const { id, holder, owner, queue, serial, state, createdAt, updatedAt, until, version, fence, runs, open, note } =
    task
  const summary = { id, holder, owner, queue, serial, state, createdAt, updatedAt, until, version, fence, runs, open }
  return note === undefined ? summary : { ...summary, note }
}
