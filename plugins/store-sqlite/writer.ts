// Connects this process to the database thread and batches operations of one event loop turn.
import type { Worker } from 'node:worker_threads'
import { type Logger, StartError } from '../../core/plugin.ts'
import type { Query, ReadAnswers, Store } from '../../core/store.ts'
import { startThread } from '../../core/transport.ts'
import { explainStart, explainTrouble, unavailable } from './failures.ts'
import {
  type Ask,
  type Batch,
  type Committed,
  clock,
  type Fault,
  type News,
  type Order,
  type ThreadSettings,
} from './thread/messages.ts'
import type { Operations } from './thread/transactions.ts'

/** Deadline of an operation, milliseconds; checked by the thread. */
const PATIENCE = 5_000
/** Additional time after which the thread is considered hanging. */
const HANGS = 10_000
/** Delay before the thread is restarted. */
const BACK_OFF = 1_000
/** Maximum number of waiting operations. */
const MOST_WAITING = 50_000

interface Waiting {
  resolve(value: unknown): void
  reject(error: unknown): void
}

export interface WriterSettings extends ThreadSettings {
  readonly log: Logger
  readonly committed: (committed: Committed) => void
}

export class Writer {
  readonly #settings: WriterSettings
  readonly #returned = new Set<() => void>()
  readonly #sent = new Map<number, { readonly waiting: readonly Waiting[]; readonly timer: NodeJS.Timeout }>()
  #asks: Ask[] = []
  #waiting: Waiting[] = []
  #pending = 0
  #batch = 0
  #worker: Worker | undefined
  #opened: Promise<void> | undefined
  #trouble: Fault | undefined
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
    if (this.#trouble) return explainTrouble(this.#trouble, this.#settings.file).reason
    return this.#hasOpened ? undefined : 'the file is not open yet'
  }

  onReturn(listener: () => void): void {
    this.#returned.add(listener)
  }

  open(): Promise<void> {
    this.#opened ??= this.#start()
    return this.#opened
  }

  /** Runs an operation. Rejects with `unavailable` if the file cannot be used; the operation can have succeeded. */
  async ask<Name extends keyof Operations>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ReturnType<Operations[Name]>> {
    if (!this.#hasOpened) await this.open()
    if (this.#closing || !this.#worker || this.#pending >= MOST_WAITING) {
      throw unavailable(
        this.#trouble ?? {
          word: 'late',
          text: this.#closing ? 'the host closes' : 'the write queue of the file is full',
        },
      )
    }
    return new Promise((resolve, reject) => {
      if (this.#asks.length === 0) setImmediate(() => this.#send())
      this.#pending++
      this.#asks.push({ name, args, deadline: clock() + PATIENCE })
      this.#waiting.push({ resolve: resolve as (value: unknown) => void, reject })
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
      setTimeout(resolve, PATIENCE).unref()
    })
    worker.postMessage('close' satisfies Order)
    await closed
    await worker.terminate()
  }

  #send() {
    const { length } = this.#asks
    if (length === 0) return
    const batch: Batch = { batch: ++this.#batch, asks: this.#asks }
    const waiting = this.#waiting
    this.#asks = []
    this.#waiting = []
    const timer = setTimeout(() => this.#giveUp(batch.batch), PATIENCE + HANGS).unref()
    this.#sent.set(batch.batch, { waiting, timer })
    if (this.#worker) this.#worker.postMessage(batch)
    else this.#giveUp(batch.batch)
  }

  #giveUp(batch: number, fault: Fault = { word: 'late', text: 'the disk does not respond' }) {
    for (const { reject } of this.#take(batch)) reject(unavailable(fault))
  }

  #take(batch: number): readonly Waiting[] {
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
      worker.on('message', (news: News) => {
        if (news.news === 'open') {
          this.#begun(news.replaced)
          resolve()
        } else if (news.news === 'failed') {
          reject(explainStart(news.fault, settings.file))
        } else this.#hear(news)
      })
      worker.on('error', error => {
        reject(new StartError('MH2401', `${settings.file} cannot be opened: ${error.message}`, { cause: error }))
        this.#settings.log.error({ code: 'MH2401', err: error }, 'the thread that writes the file failed')
      })
      worker.on('exit', () => this.#ended(worker))
    })
  }

  #begun(replaced: string | undefined) {
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
    if (wasOpen) this.#judge(undefined)
  }

  #hear(news: News) {
    switch (news.news) {
      case 'answers': {
        const waiting = this.#take(news.batch)
        for (const [index, answer] of news.answers.entries()) {
          if ('value' in answer) waiting[index]?.resolve(answer.value)
          else waiting[index]?.reject(unavailable(answer.fault))
        }
        return
      }
      case 'committed':
        return this.#settings.committed(news.committed)
      case 'trouble':
        return this.#judge(news.fault)
      case 'size':
        this.bytes = news.bytes
        this.evicted = news.evicted
        return
      case 'closed':
        this.#closed?.()
    }
  }

  #judge(fault: Fault | undefined) {
    const { log, file } = this.#settings
    const before = this.#trouble
    this.#trouble = fault
    if (fault && fault.word === before?.word) return
    if (fault) {
      const { reason, fix } = explainTrouble(fault, file)
      log.error(
        { code: 'MH2406', file, reason, said: fault.text, fix },
        'the file cannot be written: not ready, and requests that need it get 503',
      )
    } else if (before) {
      log.info({ code: 'MH2407', file }, 'the file can be written again')
      for (const listener of this.#returned) listener()
    }
  }

  #ended(worker: Worker) {
    if (this.#worker !== worker) return
    this.#worker = undefined
    this.#closed?.()
    const fault: Fault = { word: 'late', text: 'the thread that writes the file ended' }
    for (const batch of [...this.#sent.keys()]) this.#giveUp(batch, fault)
    if (this.#closing || !this.#hasOpened) return
    this.#judge(fault)
    setTimeout(() => {
      if (!this.#closing) this.#start().catch(() => undefined)
    }, BACK_OFF).unref()
  }
}

/** Creates the store in the file, for all processes of this host. */
export const createSqliteStore = (file: Writer): Store => ({
  shared: 'host',
  transact: (partition, steps, durability) => file.ask('transact', partition, steps, durability),
  read: async <const Queries extends readonly Query[]>(partition: string, queries: Queries) =>
    (await file.ask('read', partition, queries)) as ReadAnswers<Queries>,
  onReturn: listener => file.onReturn(listener),
})
