// Lines of a byte stream, each at most so long: what both ends of stdio are made of. A line past the bound is told of and
// skipped, and nothing of it is kept.
import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'

/** A line without its end, or why it has no text. */
export type Line = { readonly text: string } | { readonly fault: 'too long' | 'not UTF-8' }

const NEWLINE = 0x0a

function toLine(parts: readonly Buffer[]): Line {
  const bytes = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  return isUtf8(bytes) ? { text: bytes.toString('utf8').replace(/\r$/, '') } : { fault: 'not UTF-8' }
}

/**
 * Reads lines of at most `most` bytes, one when the one before was dealt with: who takes long holds the sender back. What
 * follows the last line end counts as a line too. Ends where the input does, be it by an error.
 */
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
    // A terminal or pipe that broke has said all that it will.
  }
  if (size > 0) yield end()
}
