// Changes of tasks: a log in the store, read by every node, with the bus as wake-up.
import type { Clock, Logger, Timer } from '../../../core/plugin.ts'
import type { Bus, LogStep, Store } from '../../../core/store.ts'
import type { TaskChange } from './task-store.ts'

export const TASKS = 'tasks'

const LOG = 'news'
const KEEP = { messages: 1_000, bytes: 1_048_576 }
/** Milliseconds after which a change is reported without the bus. Processes of one host have none. */
const POLL = { host: 100, nodes: 1_000 }
const PREFIX = 'tasks:'

type Listener = (change: TaskChange | undefined) => void

export interface ChangeSettings {
  readonly clock: Clock
  readonly log?: Logger | undefined
  readonly bus?: Bus | undefined
}

export const changeStep = ({ id, queue, state }: TaskChange): LogStep => ({
  log: LOG,
  append: [JSON.stringify([id, queue, state])],
  keep: KEEP,
})

function parseChange(text: string): TaskChange {
  const [id, queue, state] = JSON.parse(text)
  return { id, queue, state }
}

export class ChangeLog {
  readonly #store: Store
  readonly #parts: ChangeSettings
  readonly #listeners = new Set<Listener>()
  #last: number | undefined
  #reading: Promise<void> | undefined
  #isStale = false
  #polling: Timer | undefined
  #unsubscribe: (() => void) | undefined

  constructor(store: Store, parts: ChangeSettings) {
    this.#store = store
    this.#parts = parts
  }

  /** Reports a change that this node logged under this number. */
  changed(number: number, change: TaskChange) {
    this.#receive(number, change)
    const { bus } = this.#parts
    if (!bus?.shared) return
    const text = `${PREFIX}${JSON.stringify([number, change])}`
    // A failed wake-up is ignored, because other nodes read the log anyway.
    Promise.resolve(bus.publish(text)).catch(() => undefined)
  }

  watch(notify: Listener): () => void {
    // A new function, so that one listener can watch twice.
    const listener: Listener = change => notify(change)
    if (this.#listeners.size === 0 && this.#store.shared) this.#start()
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#end()
    }
  }

  #start() {
    const { bus, clock } = this.#parts
    this.#unsubscribe = bus?.subscribe(text => {
      if (text === undefined) return this.#read()
      if (!text.startsWith(PREFIX)) return
      const [number, change] = JSON.parse(text.slice(PREFIX.length))
      this.#receive(number, change)
    })
    this.#polling = clock
      .setInterval(() => this.#read(), this.#store.shared === 'host' ? POLL.host : POLL.nodes)
      .unref()
    this.#read()
  }

  #end() {
    this.#unsubscribe?.()
    this.#parts.clock.clear(this.#polling)
    this.#last = undefined
  }

  #receive(number: number, change: TaskChange) {
    if (this.#last !== undefined && number !== this.#last + 1) return this.#read()
    this.#last = number
    this.#notify(change)
  }

  /** Reads the log. Without the last number, it is unknown whether changes were missed. */
  #read() {
    this.#isStale = true
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
  }

  async #readAll(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      const after = this.#last
      try {
        const query = after === undefined ? { log: LOG, after: 0, bytes: 0 } : { log: LOG, after }
        const [page] = await this.#store.read(TASKS, [query])
        this.#add(after, page?.last ?? 0, after === undefined ? undefined : (page?.messages ?? (page ? undefined : [])))
      } catch (err) {
        this.#parts.log?.debug({ err }, 'changes of tasks are not known yet')
      }
    }
  }

  #add(after: number | undefined, last: number, messages: readonly string[] | undefined) {
    if (after === undefined || !messages || last < after) {
      if (this.#last !== after) return
      this.#last = last
      return this.#notify(undefined)
    }
    for (const [index, text] of messages.entries()) {
      if (after + 1 + index !== (this.#last ?? 0) + 1) continue
      this.#last = after + 1 + index
      this.#notify(parseChange(text))
    }
  }

  #notify(change: TaskChange | undefined) {
    for (const listener of [...this.#listeners]) {
      try {
        listener(change)
      } catch (err) {
        this.#parts.log?.error({ code: 'MH2510', err }, 'a listener of changes of tasks failed')
      }
    }
  }
}
