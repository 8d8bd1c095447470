// Buffers log lines and writes them in the background, to a stream or to a file that is reopened after rotation.

import { closeSync, fstatSync, openSync, readSync, type Stats, statSync, write } from 'node:fs'
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'
import { errorText, type Logger } from '../../core/plugin.ts'
import { withTimeout } from '../../core/transport.ts'

/** File mode without access for other users. */
const FILE_MODE = 0o640
/** Interval of the check for a renamed or removed file, milliseconds. */
const CHECK_INTERVAL = 1_000

const writeAsync = promisify(write)

export interface Destination {
  /** Writes from this offset. Returns the number of bytes written, at least one. */
  write(bytes: Buffer, from: number): Promise<number>
  close(): void
}

const openAppending = (file: string) => openSync(file, 'a', FILE_MODE)

const NEW_LINE = Buffer.from('\n')

/** True if the last line is incomplete, after a crash or on a full disk. */
function endsIncomplete(file: string, opened: Stats): boolean {
  if (!opened.isFile() || opened.size === 0) return false
  let fd: number | undefined
  try {
    fd = openSync(file, 'r')
    const last = Buffer.alloc(1)
    return readSync(fd, last, 0, 1, opened.size - 1) === 1 && !last.equals(NEW_LINE)
  } catch {
    return false
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

export function openFile(file: string): Destination {
  let fd = openAppending(file)
  let opened = fstatSync(fd)
  let isIncomplete = endsIncomplete(file, opened)
  let checkedAt = performance.now()

  function reopenIfMoved() {
    if (performance.now() - checkedAt < CHECK_INTERVAL) return
    checkedAt = performance.now()
    const current = statSync(file, { throwIfNoEntry: false })
    if (current?.ino === opened.ino && current.dev === opened.dev) return
    const reopened = openAppending(file)
    closeSync(fd)
    fd = reopened
    opened = fstatSync(fd)
    isIncomplete = endsIncomplete(file, opened)
  }

  return {
    async write(bytes, from) {
      reopenIfMoved()
      if (isIncomplete) {
        await writeAsync(fd, NEW_LINE)
        isIncomplete = false
      }
      const { bytesWritten } = await writeAsync(fd, bytes, from)
      return bytesWritten
    },
    close: () => closeSync(fd),
  }
}

/** Uses the stream's own queue: a direct write to a pipe would block a thread. */
export const wrapStream = (stream: Writable): Destination => ({
  write: (bytes, from) =>
    new Promise((resolve, reject) => {
      stream.write(bytes.subarray(from), error => (error ? reject(error) : resolve(bytes.length - from)))
    }),
  close: () => undefined,
})

/** Maximum characters per write, and delay of smaller writes, milliseconds. */
const MAX_BATCH = 256 * 1024
const FLUSH_DELAY = 500
/** Maximum buffered characters. Further lines are lost and counted. */
const MAX_BUFFERED = 8 * 1024 * 1024
/** Delay of retries, milliseconds. */
const RETRY_DELAY = 1_000
/** Milliseconds until a pending write is reported: a pipe without a reader never fails. */
const WRITE_TIMEOUT = 5_000
/** Timeout of `close`, milliseconds. */
const CLOSE_TIMEOUT = 3_000

interface WriterSettings {
  readonly destination: Destination
  readonly file: string | undefined
  readonly log: Logger
  countLost(lines: number): void
  /** Write timeout, milliseconds. Default 5,000. */
  readonly timeout?: number
}

const LINE_FEED = 10

function countLines(bytes: Buffer, from: number): number {
  let lines = 0
  for (let at = bytes.indexOf(LINE_FEED, from); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines++
  return lines
}

export class LogWriter {
  readonly #settings: WriterSettings
  #buffer: string[] = []
  #size = 0
  #batch: { readonly bytes: Buffer; from: number } | undefined
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #failure: string | undefined
  /** The pending write timed out, but can still complete. */
  #isStalled = false
  #lost = 0
  #closing = false
  #abandoned = false

  constructor(settings: WriterSettings) {
    this.#settings = settings
  }

  get failure(): string | undefined {
    return this.#failure
  }

  write(line: string): void {
    if (this.#closing || this.#size + line.length > MAX_BUFFERED) {
      this.#dropLine()
      return
    }
    this.#buffer.push(line)
    this.#size += line.length
    if (this.#writing || this.#failure !== undefined) return
    if (this.#size >= MAX_BATCH) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_DELAY).unref()
  }

  #flush() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#hasLines) this.#writing ??= this.#writeAll()
  }

  get #hasLines() {
    return this.#batch !== undefined || this.#buffer.length > 0
  }

  async #writeAll(): Promise<void> {
    while (this.#hasLines && !this.#abandoned) {
      const failure = await this.#writeBatch()
      if (failure === undefined) continue
      this.#handleFailure(failure)
      break
    }
    this.#writing = undefined
  }

  async #writeBatch(): Promise<unknown> {
    this.#batch ??= this.#takeBatch()
    const batch = this.#batch
    const { timeout = WRITE_TIMEOUT } = this.#settings
    const stallTimer = setTimeout(() => this.#reportStall(timeout), timeout).unref()
    try {
      batch.from += await this.#settings.destination.write(batch.bytes, batch.from)
    } catch (error) {
      return error
    } finally {
      clearTimeout(stallTimer)
    }
    if (batch.from === batch.bytes.length) this.#batch = undefined
    this.#handleSuccess()
    return undefined
  }

  #takeBatch() {
    const lines = this.#buffer
    this.#buffer = []
    this.#size = 0
    return { bytes: Buffer.from(lines.join('')), from: 0 }
  }

  #reportStall(timeout: number) {
    const what = this.#settings.file === undefined ? 'its reader does not read' : 'the disk does not respond'
    this.#reportFailure(`a write has not completed for ${timeout / 1_000} s: ${what}`)
    this.#isStalled = true
  }

  #reportFailure(problem: string) {
    const { file, log } = this.#settings
    if (this.#failure === undefined || this.#isStalled) {
      log.error({ code: 'MH2210', file, problem }, 'Cannot write the access log; up to 8 MB are buffered')
    }
    this.#failure = problem
    this.#isStalled = false
  }

  #handleFailure(error: unknown) {
    this.#reportFailure(errorText(error))
    if (!this.#closing) this.#timer = setTimeout(() => this.#flush(), RETRY_DELAY).unref()
  }

  #handleSuccess() {
    if (this.#failure === undefined && this.#lost === 0) return
    const { file, log } = this.#settings
    log.info({ code: 'MH2211', file, lost: this.#lost }, 'the access log is written again')
    this.#failure = undefined
    this.#isStalled = false
    this.#lost = 0
  }

  #dropLine() {
    const { file, log, countLost } = this.#settings
    const problem = this.#failure ?? 'lines are written faster than they are read'
    if (this.#lost++ === 0) log.warn({ code: 'MH2212', file, problem }, 'lines of the access log are lost')
    countLost(1)
  }

  async close(): Promise<void> {
    this.#closing = true
    clearTimeout(this.#timer)
    this.#flush()
    if (this.#writing) await withTimeout(this.#writing, CLOSE_TIMEOUT, () => undefined)
    this.#abandoned = true
    const { file, log, countLost, destination } = this.#settings
    const unwritten = this.#buffer.length + (this.#batch ? countLines(this.#batch.bytes, this.#batch.from) : 0)
    if (unwritten > 0) {
      countLost(unwritten)
      const problem = this.#failure ?? 'no reader'
      log.error({ code: 'MH2213', file, lines: unwritten, problem }, 'Access log closed with unwritten lines')
    }
    // A hanging write still uses the file, so the file stays open.
    if (this.#writing === undefined) destination.close()
  }
}
