// Lines to a file or to stdout, written together a few times a second: a log must not cost a request its time. What cannot be
// written is lost, and the host's log says so.
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { pino } from 'pino'
import { errorText, type Logger } from '../../core/index.ts'

const STDOUT = 1
/** Of a new file: no other user of the machine reads it. */
const MODE = 0o640
/** Bytes that are written together, and how long fewer wait, milliseconds. */
const TOGETHER = 16_000
const AT_MOST = 1_000
/** Bytes that may wait for a disk or a reader; past it lines are dropped. */
const MOST_WAITING = 8 * 1024 * 1024

export interface Lines {
  write(line: string): void
  /** Resolves when all is written, or cannot be. */
  close(): Promise<void>
}

/** `file`: absolute; undefined: stdout. Throws where it cannot be opened. */
export function openLines(file: string | undefined, log: Logger): Lines {
  // The stream opens it later, and tells nobody but its listeners.
  if (file !== undefined) closeSync(openSync(file, 'a', MODE))
  const to = file === undefined ? { fd: STDOUT } : { dest: file, append: true }
  const stream = pino.destination({
    ...to,
    sync: false,
    minLength: TOGETHER,
    periodicFlush: AT_MOST,
    maxLength: MOST_WAITING,
    mode: MODE,
  })
  let failing = false
  let dropped = 0
  stream.on('error', (error: unknown) => {
    if (!failing) log.error({ file, problem: errorText(error) }, 'the access log cannot be written; its lines are lost')
    failing = true
  })
  stream.on('drop', () => {
    if (dropped++ === 0) log.warn({ file }, 'dropped lines of the access log: they come faster than they are written')
  })
  stream.on('write', () => {
    if (failing) log.info({ file }, 'the access log is written again')
    failing = false
  })
  return {
    write: line => void stream.write(line),
    async close() {
      const closed = once(stream, 'close').catch(() => undefined)
      stream.end()
      await closed
    },
  }
}
