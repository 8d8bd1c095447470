// Lines of a log, one after the other, whatever its size: as text or compressed by gzip, as rotated logs are.
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'

/** Bytes of a line that is read; ours have some hundred, those of an audit some thousand. */
export const MOST_LINE = 256 * 1024

const LINE_BREAK = 0x0a
const GZIP = Buffer.from([0x1f, 0x8b])

async function* joined(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

/** The bytes of a text, also of one that is compressed. */
async function* unzipped(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const pieces = source[Symbol.asyncIterator]()
  let first = Buffer.alloc(0)
  while (first.length < GZIP.length) {
    const next = await pieces.next()
    if (next.done) break
    first = Buffer.concat([first, next.value])
  }
  if (!first.subarray(0, GZIP.length).equals(GZIP)) return yield* joined(first, pieces)
  const gunzip = createGunzip()
  const packed = Readable.from(joined(first, pieces))
  packed.once('error', error => gunzip.destroy(error))
  yield* packed.pipe(gunzip) as AsyncIterable<Buffer>
}

/**
 * Calls `take` with each line that has something in it, and with undefined for one that is longer than MOST_LINE. Rejects
 * where the source cannot be read on, such as a compressed one that was cut; what came before it was taken.
 */
export async function readLines(
  source: AsyncIterable<Buffer>,
  take: (line: string | undefined) => void,
): Promise<void> {
  let waiting: Buffer[] = []
  let length = 0
  const add = (piece: Buffer) => {
    length += piece.length
    if (length <= MOST_LINE) waiting.push(piece)
    else waiting = []
  }
  const end = () => {
    if (length > MOST_LINE) take(undefined)
    else {
      const line = waiting.length === 1 ? String(waiting[0]) : Buffer.concat(waiting).toString()
      if (line.trim() !== '') take(line)
    }
    waiting = []
    length = 0
  }
  for await (const chunk of unzipped(source)) {
    let from = 0
    for (let to = chunk.indexOf(LINE_BREAK); to !== -1; to = chunk.indexOf(LINE_BREAK, from)) {
      add(chunk.subarray(from, to))
      end()
      from = to + 1
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
  end()
}
