// One task in the memory of this process, for memory-task-store.ts.
import type { NewTask, TaskEnd, TaskQuestion, TaskRecord, TaskState, TaskSummary } from './task-store.ts'

/** What a task costs beside its texts, bytes. */
const TASK_COST = 600

/** Two a character as soon as one of them is not ASCII. */
const bytesOf = (text = '') => (Buffer.byteLength(text) === text.length ? 1 : 2) * text.length

/** What a task is told by its store, and tells it. */
export interface MemoryTaskPlaces {
  readonly now: () => number
  /** By so many bytes. */
  readonly grown: (bytes: number) => void
}

export class MemoryTask {
  readonly id: string
  readonly holder: string
  readonly queue: string
  readonly body: string
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
  #note: string | undefined
  #outcome: string | undefined

  constructor({ id, holder, queue, ttl, body }: NewTask, serial: number, places: MemoryTaskPlaces) {
    this.id = id
    this.holder = holder
    this.queue = queue
    this.body = body
    this.serial = serial
    this.#places = places
    this.createdAt = places.now()
    this.updatedAt = this.createdAt
    this.until = this.createdAt + ttl
    this.bytes = TASK_COST + bytesOf(id) + bytesOf(holder) + bytesOf(queue) + bytesOf(body)
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

  say(note: string) {
    this.#grow(bytesOf(note) - bytesOf(this.#note))
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
    this.#grow(bytesOf(key) + bytesOf(text))
  }

  /** Whether it was a question without an answer. */
  answer(key: string, answer: string): boolean {
    const question = this.#questions.get(key)
    if (!question || question.answer !== undefined) return false
    this.#questions.set(key, { ...question, answer })
    this.#grow(bytesOf(answer))
    return true
  }

  end(state: TaskEnd['state'], outcome?: string) {
    this.state = state
    this.#outcome = outcome
    this.#grow(bytesOf(outcome))
  }

  changed() {
    this.version++
    this.updatedAt = Math.max(this.updatedAt, this.#places.now())
  }

  record(): TaskRecord {
    const outcome = this.#outcome
    const whole = { ...summaryOf(this), body: this.body, questions: [...this.#questions.values()] }
    return outcome === undefined ? whole : { ...whole, outcome }
  }

  #grow(bytes: number) {
    this.bytes += bytes
    this.#places.grown(bytes)
  }
}

export function summaryOf(task: MemoryTask): TaskSummary {
  const { id, holder, queue, serial, state, createdAt, updatedAt, until, version, fence, runs, open, note } = task
  const summary = { id, holder, queue, serial, state, createdAt, updatedAt, until, version, fence, runs, open }
  return note === undefined ? summary : { ...summary, note }
}
