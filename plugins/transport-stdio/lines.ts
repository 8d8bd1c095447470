// Reads and writes lines of a byte stream, with size limits, for both ends of stdio.
import { isUtf8 } from 'node:buffer'
import type { Readable, Writable } from 'node:stream'

export interface StdioEnds {
  readonly input: Readable
  /** The stream to the client: protocol lines only. */
  readonly output: Writable
}

/** A line without its end, or the reason for its missing text. */
export type Line = { readonly text: string } | { readonly fault: 'too long' | 'not UTF-8' }

const NEWLINE = 0x0a

function toLine(parts: readonly Buffer[]): Line {
  const bytes = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  return isUtf8(bytes) ? { text: bytes.toString('utf8').replace(/\r$/, '') } : { fault: 'not UTF-8' }
}

/** Lines longer than `most` bytes are reported and skipped. Applies backpressure. Never rejects. */
export async function* readLines(input: Readable, most: number): AsyncGenerator<Line> {
  let parts: Buffer[] = []
  let size = 0
  const end = (): Line => {
    const line: Line = size > most ? { fault: 'too long' } : toLine(parts)
    parts = []
    size = 0
    return line
  }
  const add = (part: Buffer) => {
    size += part.length
    if (size > most) parts = []
    else if (part.length > 0) parts.push(part)
  }
  try {
    for await (const chunk of input) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer)
      let start = 0
      for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, start)) {
        add(bytes.subarray(start, at))
        start = at + 1
        yield end()
      }
      add(bytes.subarray(start))
    }
  } catch {
    // A broken terminal or pipe ends the input.
  }
  if (size > 0) yield end()
}

/** Unread bytes above which input is paused. */
const HIGH_WATER = 1024 * 1024
/** Unread bytes above which a message that is not a response closes the output. */
const MAX_WAITING = 16 * HIGH_WATER

export interface Output {
  /** Sends a message that is not a response. Closes the output if the reader does not read. */
  send(message: string): void
  /** Sends a response, regardless of unread bytes. */
  respond(message: string): void
  /** Resolves when little is unread, or when the output is closed. */
  drained(): Promise<void>
  end(): Promise<void>
  readonly closed: boolean
}

/** Creates the output. `onClosed` is called once if the reader is gone or does not read, but not after `end`. */
export function createOutput(
  stream: Writable,
  { onClosed }: { readonly onClosed: (why: 'closed' | 'unread') => void },
): Output {
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
    onClosed(why)
  }
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
