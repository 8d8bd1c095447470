// Lines out: one message each, and what is known of whoever reads them.
import type { Writable } from 'node:stream'

/** Bytes that may wait for the reader before nothing more is read from it. */
const HIGH_WATER = 1024 * 1024
/** Bytes that may wait when something comes that is no answer: past it the line is closed. */
const MAX_WAITING = 16 * HIGH_WATER

export interface Output {
  /** Something that may be too much for a reader who does not read: then the line is closed. */
  send(message: string): void
  /** An answer: it is written whatever waits. */
  respond(message: string): void
  /** Resolves once little waits, or nobody reads any more. */
  drained(): Promise<void>
  /** Resolves when all that was sent is on its way. Nothing is sent after it was called. */
  end(): Promise<void>
  readonly closed: boolean
}

export interface OutputOptions {
  /** The reader is gone, or does not read. Called once, not after `end`. */
  readonly gone: (why: 'closed' | 'unread') => void
}

export function createOutput(stream: Writable, { gone }: OutputOptions): Output {
  let closed = false
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const settle of [...waiting]) settle()
    waiting.clear()
  }
  function close(why: 'closed' | 'unread') {
    if (closed) return
    closed = true
    wake()
    gone(why)
  }
  // EPIPE, and whatever else a pipe ends with. Later ones have nobody to tell.
  stream.on('error', () => close('closed'))
  stream.once('close', () => close('closed'))
  stream.on('drain', wake)

  function write(message: string) {
    if (!closed) stream.write(`${message}\n`)
  }
  return {
    send(message) {
      if (stream.writableLength > MAX_WAITING) close('unread')
      write(message)
    },
    respond: write,
    drained() {
      if (closed || stream.writableLength < HIGH_WATER) return Promise.resolve()
      return new Promise(resolve => waiting.add(resolve))
    },
    end() {
      if (closed) return Promise.resolve()
      closed = true
      wake()
      return new Promise(resolve => {
        stream.once('close', resolve)
        stream.write('', () => resolve())
      })
    },
    get closed() {
      return closed
    },
  }
}
