// The one writer of an audit: takes entries as they come, writes them in order a batch at a time while nobody waits, and says
// what it does when it cannot: the host's log, readiness, and later a line of the audit itself.
import { errorText } from '../../core/index.ts'
import type { Appended, FileSettings } from './trail-file.ts'
import { TrailFile } from './trail-file.ts'

export interface TrailSettings extends FileSettings {
  /** Takes the lock, before the file is opened; one of several processes has a file of its own. */
  claim?(): Promise<Pick<FileSettings, 'path' | 'hold'>>
  readonly sync: 'always' | 'second' | 'never'
  /** Milliseconds between two lines of the host's log with the newest hash. */
  readonly headEvery: number
  /** Is told how many entries were written, or are lost. */
  count?(what: 'written' | 'lost', lines: number): void
}

/** Entries that are written together, and characters that may wait for a disk; past them entries are lost, and counted. */
const TOGETHER = 256
const MOST_WAITING = 8 * 1024 * 1024
/** Milliseconds until what failed is tried again. */
const RETRY = 1_000
const SECOND = 1_000

/** What a disk says that is full or fails: it ends without a change of the config, so a start does not wait for its end. */
const OF_DISK: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EIO'])

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

const TOO_FAST = 'requests come faster than the disk takes their lines'

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
  #told = ''

  constructor(settings: TrailSettings) {
    this.#settings = settings
  }

  /** Why lines cannot be written; undefined while they can. */
  get failure(): string | undefined {
    return this.#failure?.why ?? (this.#lost > 0 ? TOO_FAST : undefined)
  }

  /** Rejects where the config or another process is at fault; what the disk does not take now is tried again as lines are. */
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

  /** `fields`: a JSON object that has some. Returns at once. */
  push(fields: string): void {
    const isFull = this.#waiting + fields.length > MOST_WAITING
    // What is lost is lost in one piece, so that the line which counts it stands at its place.
    if (isFull || (this.#failure && this.#lost > 0)) this.#lose()
    else if (this.#failure) this.#enqueue(fields)
    else {
      this.#noteGap()
      this.#enqueue(fields)
      this.#writing ??= this.#write()
    }
  }

  /** Counts a call that was turned away because it could not be written. */
  countRefused(): void {
    this.#refused++
  }

  /** Writes what waits, with a last line; what cannot be written is lost, and the log says so. */
  async close(): Promise<void> {
    for (const timer of [this.#telling, this.#retrying, this.#syncing]) clearTimeout(timer)
    await this.#writing
    this.#noteGap()
    this.#enqueue(JSON.stringify({ time: new Date().toISOString(), event: 'closed' }))
    await this.#write()
    clearTimeout(this.#retrying)
    const { log } = this.#settings
    const lines = this.#queue.length + this.#lost
    if (lines > 0)
      log.error(
        { file: this.#path, lines, problem: this.failure },
        'closed with lines of the audit that were not written',
      )
    else await this.#file?.sync().catch(problem => this.#fail(problem))
    this.#tellHead()
    clearTimeout(this.#syncing)
    clearTimeout(this.#retrying)
    await this.#file?.close()
  }

  #lose(): void {
    const { log, count } = this.#settings
    count?.('lost', 1)
    if (this.#lost++ === 0) log.error({ file: this.#path, problem: this.failure }, 'lines of the audit are lost')
  }

  #enqueue(fields: string): void {
    this.#queue.push(fields)
    this.#waiting += fields.length
  }

  #noteGap(): void {
    if (this.#lost === 0 && this.#refused === 0) return
    const gap = { time: new Date().toISOString(), event: 'gap', lost: this.#lost, refused: this.#refused }
    this.#lost = 0
    this.#refused = 0
    this.#enqueue(JSON.stringify(gap))
  }

  async #write(): Promise<void> {
    // What comes in one turn of the event loop is written together.
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

  /** Brings what was written to the disk, as `sync` says; resolves with what is wrong. */
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
    // Another cause is told, too: that the disk has room again helps nobody who is not told of the lock.
    if (!this.#failure || this.#failure.code !== code)
      this.#settings.log.error({ file: this.#path, problem: why }, 'the audit cannot be written')
    this.#failure = { since: this.#failure?.since ?? new Date().toISOString(), why, code }
    clearTimeout(this.#retrying)
    this.#retrying = setTimeout(() => this.#retry(), RETRY).unref()
  }

  #retry(): void {
    // With nothing that waits, an entry that says what happened is what is tried.
    if (this.#queue.length === 0) this.#enqueue(JSON.stringify({ time: new Date().toISOString(), event: 'retried' }))
    this.#writing ??= this.#write()
  }

  #succeed(): void {
    // Where lines were lost to a rush alone, all that waited is written first: with `refuse` nothing else would end it.
    if (!this.#failure && (this.#lost === 0 || this.#queue.length > 0)) return
    const since = this.#failure?.since
    const told = { file: this.#path, since, lost: this.#lost, refused: this.#refused }
    this.#settings.log.info(told, 'the audit is written again')
    this.#failure = undefined
    this.#noteGap()
  }

  /** Whoever keeps these lines elsewhere can tell whether lines were cut off the end. */
  #tellHead(): void {
    if (!this.#file || !this.#isOpen) return
    const { seq, hash, chain } = this.#file.head
    if (hash === this.#told) return
    this.#told = hash
    this.#settings.log.info({ file: this.#path, chain, seq, head: hash }, 'the head of the audit')
  }
}
