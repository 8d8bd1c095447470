// Reads the stderr of a server: all of it, so that the server never blocks, and a limited part for the log.
import type { Readable } from 'node:stream'
import { printable } from '../errors.ts'
import { createLineSplitter } from './lines.ts'

const MAX_LINE = 8 * 1_024
const MAX_LINES = 100
/** Period of the line limit, milliseconds. */
const WINDOW = 60_000
const KEPT = 20

/** Returns the list of the last lines. `log` receives at most 100 lines a minute, and then the number of omitted lines. */
export function readStderr(stream: Readable, log: (line: string) => void): readonly string[] {
  const last: string[] = []
  let begun = performance.now()
  let count = 0
  let omitted = 0

  function take(text: string): void {
    last.push(text)
    if (last.length > KEPT) last.shift()
    if (performance.now() - begun > WINDOW) {
      if (omitted > 0) log(`(${omitted} lines omitted)`)
      begun = performance.now()
      count = omitted = 0
    }
    if (++count > MAX_LINES) omitted++
    else log(text)
  }

  const split = createLineSplitter(MAX_LINE, {
    take: line => line.length > 0 && take(printable(line.toString())),
    tooLong: () => take(`(a line of more than ${MAX_LINE} bytes)`),
  })
  stream.on('data', split)
  stream.on('error', () => undefined)
  return last
}
