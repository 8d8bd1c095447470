// What an audit's file ends with: its last whole line, and what a killed process wrote of the next one.
import type { FileHandle } from 'node:fs/promises'
import { type FileFacts, factsIn, MOST_LINE, type ReadLine, readLine } from './chain.ts'

const LINE_FEED = 0x0a

export interface Tail {
  readonly facts: FileFacts
  readonly last: ReadLine
  /** Bytes up to the end of the last whole line. */
  readonly size: number
  /** What is behind it. */
  readonly torn: Buffer
}

async function readAt(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, from)
  return buffer.subarray(0, bytesRead)
}

async function readFirst(handle: FileHandle): Promise<FileFacts | undefined> {
  const start = await readAt(handle, 0, 4_096)
  const end = start.indexOf(LINE_FEED)
  return end === -1 ? undefined : factsIn(readLine(start.subarray(0, end)))
}

/** `empty`: it has no whole line, and all of it is torn. Undefined: it is no audit. */
export async function readTail(handle: FileHandle, size: number): Promise<Tail | { empty: Buffer } | undefined> {
  if (size === 0) return { empty: Buffer.alloc(0) }
  const from = Math.max(0, size - 2 * MOST_LINE)
  const end = await readAt(handle, from, size - from)
  const whole = end.lastIndexOf(LINE_FEED)
  if (whole === -1) {
    // The very first line, of which not all was written.
    const isOurs = from === 0 && '{"seq":'.startsWith(end.toString('latin1', 0, 7))
    return isOurs ? { empty: end } : undefined
  }
  const facts = await readFirst(handle)
  const before = whole === 0 ? -1 : end.lastIndexOf(LINE_FEED, whole - 1)
  const last = readLine(end.subarray(before + 1, whole))
  if (!facts || !last) return undefined
  return { facts, last, size: from + whole + 1, torn: end.subarray(whole + 1) }
}
