// Buffers log lines and writes them in the background, to a stream or to a file that is reopened after rotation.

import { closeSync, fstatSync, openSync, readSync, type Stats, statSync, write } from 'node:fs'
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'
import { errorText, type Logger } from '../../core/plugin.ts'
import { withTimeout } from '../../core/transport.ts'

/** File mode without access for other users. */
const MODE = 0o640
/** Interval of the check for a renamed or removed file, milliseconds. */
const CHECK_INTERVAL = 1_000

const writeTo = promisify(write)

export interface Destination {
  /** Writes from this offset. Returns the number of bytes written, at least one. */
  write(bytes: Buffer, from: number): Promise<number>
  close(): void
}

const openAppending = (file: string) => openSync(file, 'a', MODE)

const NEW_LINE = Buffer.from('\n')

/** True if the last line is incomplete, after a crash or on a full disk. */
function endsTorn(file: string, opened: Stats): boolean {
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

export function toFile(file: string): Destination {
  let fd = openAppending(file)
  let opened = fstatSync(fd)
  let isTorn = endsTorn(file, opened)
  let checkedAt = performance.now()

  function reopenIfMoved() {
    if (performance.now() - checkedAt < CHECK_INTERVAL) return
    checkedAt = performance.now()
    const found = statSync(file, { throwIfNoEntry: false })
    if (found?.ino === opened.ino && found.dev === opened.dev) return
    const next = openAppending(file)
    closeSync(fd)
    fd = next
    opened = fstatSync(fd)
    isTorn = endsTorn(file, opened)
  }

  return {
    async write(bytes, from) {
      reopenIfMoved()
      if (isTorn) {
        await writeTo(fd, NEW_LINE)
        isTorn = false
      }
      const { bytesWritten } = await writeTo(fd, bytes, from)
      return bytesWritten
    },
    close: () => closeSync(fd),
  }
}

/** Uses the stream's own queue: a direct write to a pipe would block a thread. */
export const toStream = (stream: Writable): Destination => ({
  write: (bytes, from) =>
    new Promise((resolve, reject) => {
      stream.write(bytes.subarray(from), error => (error ? reject(error) : resolve(bytes.length - from)))
    }),
  close: () => undefined,
})

/** Maximum characters per write, and delay of smaller writes, milliseconds. */
const TOGETHER = 256 * 1024
const AT_MOST = 500
/** Maximum buffered characters. Further lines are lost and counted. */
const MOST_WAITING = 8 * 1024 * 1024
/** Delay of retries, milliseconds. */
const RETRY = 1_000
/** Milliseconds until a pending write is reported: a pipe without a reader never fails. */
const TIMEOUT = 5_000
/** Timeout of `close`, milliseconds. */
const CLOSE_TIME = 3_000

interface LinesSettings {
  readonly destination: Destination
  readonly file: string | undefined
  readonly log: Logger
  lost(lines: number): void
  /** Write timeout, milliseconds. Default 5,000. */
  readonly timeout?: number
}

const LINE_FEED = 10

function linesFrom(bytes: Buffer, from: number): number {
  let lines = 0
  for (let at = bytes.indexOf(LINE_FEED, from); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines++
  return lines
}

export class Lines {
  readonly #settings: LinesSettings
  #waiting: string[] = []
  #size = 0
  #batch: { readonly bytes: Buffer; from: number } | undefined
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #failure: string | undefined
  /** The pending write timed out, but can still complete. */
  #isStuck = false
  #lost = 0
  #closing = false
  #abandoned = false

  constructor(settings: LinesSettings) {
    this.#settings = settings
  }

  get failure(): string | undefined {
    return this.#failure
  }

  write(line: string): void {
    if (this.#closing || this.#size + line.length > MOST_WAITING) {
      this.#lose()
      return
    }
    this.#waiting.push(line)
    this.#size += line.length
    if (this.#writing || this.#failure !== undefined) return
    if (this.#size >= TOGETHER) this.#begin()
    else this.#timer ??= setTimeout(() => this.#begin(), AT_MOST).unref()
  }

  #begin() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#hasLines) this.#writing ??= this.#writeAll()
  }

  get #hasLines() {
    return this.#batch !== undefined || this.#waiting.length > 0
  }

  async #writeAll(): Promise<void> {
    while (this.#hasLines && !this.#abandoned) {
      const failure = await this.#writeSome()
      if (failure === undefined) continue
      this.#fail(failure)
      break
    }
    this.#writing = undefined
  }

  async #writeSome(): Promise<unknown> {
    this.#batch ??= this.#take()
    const batch = this.#batch
    const { timeout = TIMEOUT } = this.#settings
    const stuck = setTimeout(() => this.#stick(timeout), timeout).unref()
    try {
      batch.from += await this.#settings.destination.write(batch.bytes, batch.from)
    } catch (error) {
      return error
    } finally {
      clearTimeout(stuck)
    }
    if (batch.from === batch.bytes.length) this.#batch = undefined
    this.#succeed()
    return undefined
  }

  #take() {
    const lines = this.#waiting
    this.#waiting = []
    this.#size = 0
    return { bytes: Buffer.from(lines.join('')), from: 0 }
  }

  #stick(timeout: number) {
    const what = this.#settings.file === undefined ? 'its reader does not read' : 'the disk does not respond'
    this.#tell(`a write has not completed for ${timeout / 1_000} s: ${what}`)
    this.#isStuck = true
  }

  #tell(problem: string) {
    const { file, log } = this.#settings
    if (this.#failure === undefined || this.#isStuck) {
      log.error({ code: 'MH2210', file, problem }, 'Cannot write the access log; up to 8 MB are buffered')
    }
    this.#failure = problem
    this.#isStuck = false
  }

  #fail(error: unknown) {
    this.#tell(errorText(error))
    if (!this.#closing) this.#timer = setTimeout(() => this.#begin(), RETRY).unref()
  }

  #succeed() {
    if (this.#failure === undefined && this.#lost === 0) return
    const { file, log } = this.#settings
    log.info({ code: 'MH2211', file, lost: this.#lost }, 'the access log is written again')
    this.#failure = undefined
    this.#isStuck = false
    this.#lost = 0
  }

  #lose() {
    const { file, log, lost } = this.#settings
    const problem = this.#failure ?? 'lines are written faster than they are read'
    if (this.#lost++ === 0) log.warn({ code: 'MH2212', file, problem }, 'lines of the access log are lost')
    lost(1)
  }

  async close(): Promise<void> {
    this.#closing = true
    clearTimeout(this.#timer)
    this.#begin()
    if (this.#writing) await withTimeout(this.#writing, CLOSE_TIME, () => undefined)
    this.#abandoned = true
    const { file, log, lost, destination } = this.#settings
    const left = this.#waiting.length + (this.#batch ? linesFrom(this.#batch.bytes, this.#batch.from) : 0)
    if (left > 0) {
      lost(left)
      const problem = this.#failure ?? 'no reader'
      log.error({ code: 'MH2213', file, lines: left, problem }, 'Access log closed with unwritten lines')
    }
    // A hanging write still uses the file, so the file stays open.
    if (this.#writing === undefined) destination.close()
  }
}
