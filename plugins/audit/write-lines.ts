// Entries become lines of the chain and go to the file: what of them is whole there, and what stands behind of one that is not.
import type { FileHandle } from 'node:fs/promises'
import { type Head, type Signer, sealLine } from './chain.ts'

export interface WrittenLines {
  /** So many of them are whole. */
  readonly lines: number
  /** Bytes of those. */
  readonly size: number
  /** The last of those; else the head before. */
  readonly head: Head
  /** Bytes of the next one that stand behind them. */
  readonly torn: number
  /** Why not all of them are whole. */
  readonly failure?: unknown
}

/** `entries`: JSON objects, each of which becomes a line behind `head`. */
export async function writeLines(
  handle: FileHandle,
  entries: readonly string[],
  head: Head,
  signer: Signer,
): Promise<WrittenLines> {
  let next = head
  const sealed = entries.map(fields => {
    const { text, head: own } = sealLine(fields, next, signer)
    next = own
    return { bytes: Buffer.from(text), head: own }
  })
  const bytes = Buffer.concat(sealed.map(line => line.bytes))
  let done = 0
  let failure: unknown
  try {
    while (done < bytes.length) done += (await handle.write(bytes, done)).bytesWritten
  } catch (error) {
    failure = error
  }
  let lines = 0
  let size = 0
  for (const line of sealed) {
    if (size + line.bytes.length > done) break
    size += line.bytes.length
    lines++
  }
  return { lines, size, head: sealed[lines - 1]?.head ?? head, torn: done - size, failure }
}

/** Not all was written; `cause` says why. */
export class PartlyWritten extends Error {
  readonly lines: number
  constructor(lines: number, cause: unknown) {
    super('not all of it was written', { cause })
    this.lines = lines
  }
}
