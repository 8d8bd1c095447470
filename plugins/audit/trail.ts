// Queues and writes audit entries in batches, and reports failures.
import { errorText } from '../../core/plugin.ts'
import { stamped } from './chain.ts'
import { codeOf } from './files.ts'
import { type Appended, type FileSettings, TrailFile } from './trail-file.ts'

export interface TrailSettings extends FileSettings {
  claim?(): Promise<Pick<FileSettings, 'path' | 'hold'>>
  readonly sync: 'always' | 'second' | 'never'
  /** Interval between log lines with the newest hash, milliseconds. */
  readonly headEvery: number
  count?(what: 'written' | 'lost', lines: number): void
}

/** Entries of a batch, and characters that can be queued. Further entries are lost and counted. */
const TOGETHER = 256
const MAX_QUEUED = 8 * 1024 * 1024
/** Delay of retries, milliseconds. */
const RETRY = 1_000
const SECOND = 1_000

/** Disk errors, which can end without a config change, so startup does not fail. */
const OF_DISK: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EIO'])

const TOO_FAST = 'the disk is too slow for the lines of the requests'

export class Trail {
  readonly #settings: TrailSettings
  #file: TrailFile | undefined
  #isOpen = false
  #queue: string[] = []
  #waiting = 0
  #writing: Promise<void> | undefined
  #failure: { readonly since: string; readonly why: string; readonly code: unknown } | undefined
  #lost = 0
  #refused = 0
  #syncing: NodeJS.Timeout | undefined
  #retrying: NodeJS.Timeout | undefined
  #telling: NodeJS.Timeout | undefined
  #reportedHash = ''

  constructor(settings: TrailSettings) {
    this.#settings = settings
  }

  get failure(): string | undefined {
    return this.#failure?.why ?? (this.#lost > 0 ? TOO_FAST : undefined)
  }

  /** Rejects for errors of the config and for a locked file. Disk errors are retried. */
  async start(): Promise<void> {
    try {
      await this.#open()
    } catch (problem) {
      if (!OF_DISK.has(codeOf(problem))) {
        await this.#file?.close()
        throw problem
      }
      this.#fail(problem)
    }
    this.#telling = setInterval(() => this.#tellHead(), this.#settings.headEvery)
    this.#telling.unref()
  }

  get #path(): string {
    return this.#file?.path ?? this.#settings.path
  }

  async #open(): Promise<void> {
    if (this.#isOpen) return
    this.#file ??= new TrailFile({ ...this.#settings, ...(await this.#settings.claim?.()) })
    await this.#file.start()
    this.#isOpen = true
  }

  push(fields: string): void {
    const isFull = this.#waiting + fields.length > MAX_QUEUED
    // Lost entries are contiguous, so that one `gap` line is at the right position.
    if (isFull || (this.#failure && this.#lost > 0)) this.#lose()
    else if (this.#failure) this.#enqueue(fields)
    else {
      this.#noteGap()
      this.#enqueue(fields)
      this.#writing ??= this.#write()
    }
  }

  countRefused(): void {
    this.#refused++
  }

  /** Writes the queue and a last line, and logs lost entries. */
  async close(): Promise<void> {
    for (const timer of [this.#telling, this.#retrying, this.#syncing]) clearTimeout(timer)
    await this.#writing
    this.#noteGap()
    this.#enqueue(stamped({ event: 'closed' }))
    await this.#write()
    clearTimeout(this.#retrying)
    const { log } = this.#settings
    const lines = this.#queue.length + this.#lost
    if (lines > 0)
      log.error({ code: 'MH2227', file: this.#path, lines, problem: this.failure }, 'Audit closed with unwritten lines')
    else await this.#file?.sync().catch(problem => this.#fail(problem))
    this.#tellHead()
    clearTimeout(this.#syncing)
    clearTimeout(this.#retrying)
    await this.#file?.close()
  }

  #lose(): void {
    const { log, count } = this.#settings
    count?.('lost', 1)
    if (this.#lost++ === 0)
      log.error({ code: 'MH2226', file: this.#path, problem: this.failure }, 'lines of the audit are lost')
  }

  #enqueue(fields: string): void {
    this.#queue.push(fields)
    this.#waiting += fields.length
  }

  #noteGap(): void {
    if (this.#lost === 0 && this.#refused === 0) return
    const gap = stamped({ event: 'gap', lost: this.#lost, refused: this.#refused })
    this.#lost = 0
    this.#refused = 0
    this.#enqueue(gap)
  }

  async #write(): Promise<void> {
    await new Promise(setImmediate)
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, TOGETHER)
      const { written, failure } = await this.#append(batch)
      for (const fields of this.#queue.splice(0, written)) this.#waiting -= fields.length
      if (written > 0) this.#settings.count?.('written', written)
      const problem = failure ?? (await this.#settle())
      if (problem !== undefined) {
        this.#fail(problem)
        break
      }
      this.#succeed()
    }
    this.#writing = undefined
  }

  async #append(batch: readonly string[]): Promise<Appended> {
    try {
      await this.#open()
    } catch (failure) {
      return { written: 0, failure }
    }
    return this.#file?.append(batch) ?? { written: 0 }
  }

  /** Syncs the file as configured. Resolves with the error, if any. */
  async #settle(): Promise<unknown> {
    const { sync } = this.#settings
    if (sync === 'never') return undefined
    if (sync === 'second') {
      this.#syncing ??= setTimeout(() => void this.#syncLater(), SECOND).unref()
      return undefined
    }
    return this.#file?.sync().then(
      () => undefined,
      (problem: unknown) => problem,
    )
  }

  async #syncLater(): Promise<void> {
    this.#syncing = undefined
    try {
      await this.#file?.sync()
    } catch (problem) {
      this.#fail(problem)
    }
  }

  #fail(problem: unknown): void {
    const why = errorText(problem)
    const code = codeOf(problem)
    if (!this.#failure || this.#failure.code !== code)
      this.#settings.log.error({ code: 'MH2201', file: this.#path, problem: why }, 'the audit cannot be written')
    this.#failure = { since: this.#failure?.since ?? new Date().toISOString(), why, code }
    clearTimeout(this.#retrying)
    this.#retrying = setTimeout(() => this.#retry(), RETRY).unref()
  }

  #retry(): void {
    // If the queue is empty, this entry tests whether writing works again.
    if (this.#queue.length === 0) this.#enqueue(stamped({ event: 'retried' }))
    this.#writing ??= this.#write()
  }

  #succeed(): void {
    if (!this.#failure && (this.#lost === 0 || this.#queue.length > 0)) return
    const since = this.#failure?.since
    const fields = { file: this.#path, since, lost: this.#lost, refused: this.#refused }
    this.#settings.log.info({ code: 'MH2225', ...fields }, 'the audit is written again')
    this.#failure = undefined
    this.#noteGap()
  }

  /** Logs the newest hash. Copies of these log lines reveal lines that are cut off the end. */
  #tellHead(): void {
    if (!this.#file || !this.#isOpen) return
    const { seq, hash, chain } = this.#file.head
    if (hash === this.#reportedHash) return
    this.#reportedHash = hash
    this.#settings.log.info(
      { code: 'MH2228', file: this.#path, chain, seq, head: hash },
      'the newest hash of the audit',
    )
  }
}
