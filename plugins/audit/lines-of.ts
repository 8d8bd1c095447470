// The lines of a file one after the other, in bounded memory whatever stands in it.
import { createReadStream } from 'node:fs'
import { MOST_LINE } from './chain.ts'

export interface FileLine {
  /** From 1. */
  readonly number: number
  /** Without its line break; undefined: it is longer than any of ours, and nothing is read behind it. */
  readonly bytes: Buffer | undefined
  /** Whether a line break follows. */
  readonly ended: boolean
}

const LINE_FEED = 0x0a

export async function* linesOf(path: string): AsyncGenerator<FileLine> {
  let number = 1
  let rest: Buffer[] = []
  let length = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      yield { number: number++, bytes: Buffer.concat([...rest, chunk.subarray(from, at)]), ended: true }
      rest = []
      length = 0
      from = at + 1
    }
    rest.push(chunk.subarray(from))
    length += chunk.length - from
    if (length > MOST_LINE) return yield { number, bytes: undefined, ended: false }
  }
  if (length > 0) yield { number, bytes: Buffer.concat(rest), ended: false }
}
