// Connects this process to the database thread and batches operations of one event loop turn.
import type { Worker } from 'node:worker_threads'
import { type Logger, StartError } from '../../core/plugin.ts'
import type { Query, ReadAnswers, Store } from '../../core/store.ts'
import { startThread } from '../../core/transport.ts'
import { explainFailure, explainStart, unavailable } from './failures.ts'
import {
  type Batch,
  type Command,
  type Committed,
  clock,
  type Failure,
  type Operation,
  type ThreadEvent,
  type ThreadSettings,
} from './thread/messages.ts'
import type { Operations } from './thread/transactions.ts'

/** Deadline of an operation, milliseconds; checked by the thread. */
const TIMEOUT = 5_000
const HANG_TIME = 10_000
const RESTART_DELAY = 1_000
/** Maximum number of waiting operations. */
const MAX_PENDING = 50_000

interface Caller {
  resolve(value: unknown): void
  reject(error: unknown): void
}

export interface WriterSettings extends ThreadSettings {
  readonly log: Logger
  readonly committed: (committed: Committed) => void
}

export class Writer {
  readonly #settings: WriterSettings
  readonly #listeners = new Set<() => void>()
  readonly #sent = new Map<number, { readonly waiting: readonly Caller[]; readonly timer: NodeJS.Timeout }>()
  #queue: Operation[] = []
  #callers: Caller[] = []
  #pending = 0
  #batch = 0
  #worker: Worker | undefined
  #opened: Promise<void> | undefined
  #failure: Failure | undefined
  #closing = false
  #hasOpened = false
  #closed: (() => void) | undefined
  bytes = 0
  evicted = 0

  constructor(settings: WriterSettings) {
    this.#settings = settings
  }

  /** The reason why the file cannot be written, without its path; undefined if it can. */
  get trouble(): string | undefined {
    if (this.#failure) return explainFailure(this.#failure, this.#settings.file).reason
    return this.#hasOpened ? undefined : 'the file is not open yet'
  }

  onReturn(listener: () => void): void {
    this.#listeners.add(listener)
  }

  open(): Promise<void> {
    this.#opened ??= this.#start()
    return this.#opened
  }

  /** Runs an operation. Rejects with `unavailable` if the file cannot be used; the operation may have succeeded. */
  async run<Name extends keyof Operations>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ReturnType<Operations[Name]>> {
    if (!this.#hasOpened) await this.open()
    if (this.#closing || !this.#worker || this.#pending >= MAX_PENDING) {
      throw unavailable(
        this.#failure ?? {
          code: 'late',
          text: this.#closing ? 'the host closes' : 'the write queue of the file is full',
        },
      )
    }
    return new Promise((resolve, reject) => {
      if (this.#queue.length === 0) setImmediate(() => this.#send())
      this.#pending++
      this.#queue.push({ name, args, deadline: clock() + TIMEOUT })
      this.#callers.push({ resolve: resolve as (value: unknown) => void, reject })
    })
  }

  async close(): Promise<void> {
    await this.#opened?.catch(() => undefined)
    this.#send()
    this.#closing = true
    const worker = this.#worker
    if (!worker) return
    const closed = new Promise<void>(resolve => {
      this.#closed = resolve
      setTimeout(resolve, TIMEOUT).unref()
    })
    worker.postMessage('close' satisfies Command)
    await closed
    await worker.terminate()
  }

  #send() {
    if (this.#queue.length === 0) return
    const batch: Batch = { batch: ++this.#batch, operations: this.#queue }
    const waiting = this.#callers
    this.#queue = []
    this.#callers = []
    const timer = setTimeout(() => this.#fail(batch.batch), TIMEOUT + HANG_TIME).unref()
    this.#sent.set(batch.batch, { waiting, timer })
    if (this.#worker) this.#worker.postMessage(batch)
    else this.#fail(batch.batch)
  }

  #fail(batch: number, failure: Failure = { code: 'late', text: 'the disk does not respond' }) {
    for (const { reject } of this.#take(batch)) reject(unavailable(failure))
  }

  #take(batch: number): readonly Caller[] {
    const { waiting = [], timer } = this.#sent.get(batch) ?? {}
    clearTimeout(timer)
    this.#sent.delete(batch)
    this.#pending -= waiting.length
    return waiting
  }

  #start(): Promise<void> {
    const { log: _, committed: __, ...settings } = this.#settings
    return new Promise((resolve, reject) => {
      const worker = startThread('plugins/store-sqlite/thread/main', {
        workerData: settings,
        name: 'store-sqlite',
        execArgv: ['--disable-warning=ExperimentalWarning'],
      })
      this.#worker = worker
      worker.on('message', (event: ThreadEvent) => {
        if (event.type === 'open') {
          this.#handleOpen(event.replaced)
          resolve()
        } else if (event.type === 'failed') {
          reject(explainStart(event.failure, settings.file))
        } else this.#handleEvent(event)
      })
      worker.on('error', error => {
        reject(new StartError('MH2401', `${settings.file} cannot be opened: ${error.message}`, { cause: error }))
        this.#settings.log.error({ code: 'MH2401', err: error }, 'the thread that writes the file failed')
      })
      worker.on('exit', () => this.#handleExit(worker))
    })
  }

  #handleOpen(replaced: string | undefined) {
    const { log, file } = this.#settings
    if (replaced !== undefined) {
      const fix = 'restore a backup of the file, or delete the damaged file when it is no longer needed'
      log.error(
        { code: 'MH2405', file, damaged: replaced, fix },
        'the file was damaged: it was renamed, and its contents are lost',
      )
    }
    const wasOpen = this.#hasOpened
    this.#hasOpened = true
    if (wasOpen) this.#setFailure(undefined)
  }

  #handleEvent(event: ThreadEvent) {
    switch (event.type) {
      case 'answers': {
        const waiting = this.#take(event.batch)
        for (const [index, answer] of event.answers.entries()) {
          if ('value' in answer) waiting[index]?.resolve(answer.value)
          else waiting[index]?.reject(unavailable(answer.failure))
        }
        return
      }
      case 'committed':
        return this.#settings.committed(event.committed)
      case 'trouble':
        return this.#setFailure(event.failure)
      case 'size':
        this.bytes = event.bytes
        this.evicted = event.evicted
        return
      case 'closed':
        this.#closed?.()
    }
  }

  #setFailure(failure: Failure | undefined) {
    const { log, file } = this.#settings
    const previous = this.#failure
    this.#failure = failure
    if (failure && failure.code === previous?.code) return
    if (failure) {
      const { reason, fix } = explainFailure(failure, file)
      log.error(
        { code: 'MH2406', file, reason, said: failure.text, fix },
        'the file cannot be written: not ready, and requests that need it get 503',
      )
    } else if (previous) {
      log.info({ code: 'MH2407', file }, 'the file can be written again')
      for (const listener of this.#listeners) listener()
    }
  }

  #handleExit(worker: Worker) {
    if (this.#worker !== worker) return
    this.#worker = undefined
    this.#closed?.()
    const failure: Failure = { code: 'late', text: 'the thread that writes the file ended' }
    for (const batch of [...this.#sent.keys()]) this.#fail(batch, failure)
    if (this.#closing || !this.#hasOpened) return
    this.#setFailure(failure)
    setTimeout(() => {
      if (!this.#closing) this.#start().catch(() => undefined)
    }, RESTART_DELAY).unref()
  }
}

export const createSqliteStore = (file: Writer): Store => ({
  shared: 'host',
  transact: (partition, steps, durability) => file.run('transact', partition, steps, durability),
  read: async <const Queries extends readonly Query[]>(partition: string, queries: Queries) =>
    (await file.run('read', partition, queries)) as ReadAnswers<Queries>,
  onReturn: listener => file.onReturn(listener),
})
