// What a run asks its client: each question is kept with the task, and its answer comes from wherever an update lands. A run
// that follows another finds the answers that were given to that one.
import { ToolError } from '../../core/index.ts'
import {
  type AskClient,
  isAnswer,
  type Question,
  type TaskLease,
  type TaskQuestion,
  type TaskStore,
} from '../../core/transport.ts'
import type { Asked } from './shown.ts'

/** Questions of one task: a client that never answers what it is asked is not asked for ever. */
const MOST_QUESTIONS = 100

/** The names of keys, where the handler gives none. */
const NAMES: Readonly<Record<string, string>> = {
  'elicitation/create': 'elicit',
  'sampling/createMessage': 'sample',
  'roots/list': 'roots',
}

/** The lease of a run is lost: its client cancelled the task, it is over, or another node has it. */
export class LeaseLost extends Error {
  constructor() {
    super('the task was cancelled or is over, or another node has it')
    this.name = 'LeaseLost'
  }
}

/** Called when the run begins to wait for its client, and when it does not wait any more, before the handler continues. */
export interface Pauses {
  pause(): void
  resume(): Promise<void>
}

export class RunQuestions implements AskClient {
  readonly #store: TaskStore
  readonly #lease: TaskLease
  /** In the order in which they were asked; an answer is put in its place. */
  readonly #questions: TaskQuestion[]
  readonly #used = new Set<string>()
  readonly #pauses: Pauses
  readonly #waiting = new Map<string, (answer: string) => void>()

  constructor(store: TaskStore, lease: TaskLease, questions: readonly TaskQuestion[], pauses: Pauses) {
    this.#store = store
    this.#lease = lease
    this.#pauses = pauses
    this.#questions = [...questions]
  }

  /** Questions whose answers this run does not have. */
  get open(): number {
    return this.#questions.filter(({ answer }) => answer === undefined).length
  }

  /** The task's questions as they are now. */
  update(questions: readonly TaskQuestion[]) {
    for (const { key, answer } of questions) {
      const at = this.#questions.findIndex(one => one.key === key)
      const known = this.#questions[at]
      if (answer === undefined || !known || known.answer !== undefined) continue
      this.#questions[at] = { ...known, answer }
      this.#waiting.get(key)?.(answer)
    }
  }

  async ask(method: string, params: object, signal: AbortSignal, name?: string): Promise<unknown> {
    // Nobody is there to answer: the client is asked for its answers, and otherwise comes when it likes.
    if (method === 'ping') return {}
    const asked: Asked = name === undefined ? { method, params } : { method, params, as: name }
    const text = JSON.stringify(asked)
    for (;;) {
      const { key, answer } = this.#earlier(text) ?? (await this.#add(text, name ?? NAMES[method] ?? 'question'))
      const said: unknown = JSON.parse(answer ?? (await this.#answerTo(key, signal)))
      if (await isAnswer({ method, params } as Question, said)) return said
    }
  }

  /** The next of the earlier ones that asks the same. */
  #earlier(text: string): TaskQuestion | undefined {
    const found = this.#questions.find(question => question.text === text && !this.#used.has(question.key))
    if (found) this.#used.add(found.key)
    return found
  }

  async #add(text: string, name: string): Promise<TaskQuestion> {
    if (this.#questions.length >= MOST_QUESTIONS)
      throw new ToolError(`A task asks at most ${MOST_QUESTIONS} questions.`)
    const question = { key: this.#keyFor(name), text }
    this.#questions.push(question)
    this.#used.add(question.key)
    if (!(await this.#store.ask(this.#lease, question))) throw new LeaseLost()
    return this.#questions.find(({ key }) => key === question.key) ?? question
  }

  #keyFor(name: string): string {
    const taken = new Set(this.#questions.map(({ key }) => key))
    for (let number = 1; ; number++) {
      const key = `${name}-${number}`
      if (!taken.has(key)) return key
    }
  }

  #answerTo(key: string, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        this.#waiting.delete(key)
        signal.removeEventListener('abort', stop)
        void this.#resume().then(settle)
      }
      // A handler can continue after its cancellation, so it also needs a slot.
      const stop = () => end(() => reject(signal.reason))
      if (signal.aborted) return reject(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      this.#waiting.set(key, answer => end(() => resolve(answer)))
      this.#pauses.pause()
    })
  }

  async #resume(): Promise<void> {
    if (this.#waiting.size > 0) return
    await this.#pauses.resume()
    // The handler asked again while it had no slot.
    if (this.#waiting.size > 0) this.#pauses.pause()
  }
}
