// Reads audit files with limited memory, and names archives.
import { createReadStream, existsSync } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { StartError } from '../../core/plugin.ts'
import { plainText as printableText } from '../../core/transport.ts'
import { type FileFacts, factsIn, MAX_LINE, type ReadLine, readLine } from './chain.ts'

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code

interface FileLine {
  readonly number: number
  /** The line without its line break; undefined for an oversized line, which ends the reading. */
  readonly bytes: Buffer | undefined
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
    if (length > MAX_LINE) return yield { number, bytes: undefined, ended: false }
  }
  if (length > 0) yield { number, bytes: Buffer.concat(rest), ended: false }
}

/** Matches `2026-11-22T18-05-09-123Z`, with a number if the name is taken. */
const STAMP = /^(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z)(?:-(\d+))?$/

const partsOf = (path: string) => {
  const extension = extname(path)
  return { folder: dirname(path), stem: `${basename(path, extension)}.`, extension }
}

export async function archivesOf(path: string): Promise<string[]> {
  const { folder, stem, extension } = partsOf(path)
  const names = await readdir(folder)
  const found = names.flatMap(name => {
    if (!name.startsWith(stem) || !name.endsWith(extension)) return []
    const [stamp, time, number = '1'] = STAMP.exec(name.slice(stem.length, name.length - extension.length)) ?? []
    return stamp === undefined || time === undefined ? [] : { name, time, number: Number(number) }
  })
  // Sorting by name would be wrong: `-2` must follow the name without a number, and `-10` must follow `-2`.
  found.sort((one, other) => (one.time === other.time ? one.number - other.number : one.time < other.time ? -1 : 1))
  return found.map(({ name }) => join(folder, name))
}

export async function moveAway(path: string): Promise<string> {
  const { folder, stem, extension } = partsOf(path)
  const stamp = new Date().toISOString().replace(/[:.]/g, '-')
  for (let number = 1; ; number++) {
    const to = join(folder, `${stem}${stamp}${number === 1 ? '' : `-${number}`}${extension}`)
    if (existsSync(to)) continue
    await rename(path, to)
    return to
  }
}

export async function removeOldest(path: string, keep: number): Promise<string[]> {
  if (keep === Infinity) return []
  const all = await archivesOf(path)
  const old = all.slice(0, Math.max(0, all.length - keep))
  for (const file of old) await rm(file)
  return old
}

/** Returns the file of one of several processes: `audit.jsonl` becomes `audit.2.jsonl`. */
export function workerFile(path: string, number: number): string {
  const { folder, stem, extension } = partsOf(path)
  return join(folder, `${stem}${number}${extension}`)
}

export const plainText = (text: string, most: number): string =>
  printableText(text, most) + (text.length > most ? '…' : '')

/** Maximum characters of an incomplete line that are kept. */
const MAX_TORN = 2_048

export interface Tail {
  readonly facts: FileFacts
  readonly last: ReadLine
  readonly size: number
  readonly torn: Buffer
}

export const shownTorn = (torn: Buffer): string =>
  plainText(
    torn.toString('utf8').replace(/\0+/g, zeros => `[${zeros.length} zero bytes]`),
    MAX_TORN,
  )

async function readAt(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, from)
  return buffer.subarray(0, bytesRead)
}

async function readFirst(handle: FileHandle): Promise<FileFacts | undefined> {
  const start = await readAt(handle, 0, 4_096)
  const end = start.indexOf(LINE_FEED)
  return end === -1 ? undefined : factsIn(readLine(start.subarray(0, end)))
}

/** True for zero bytes, which were allocated before a power cut but not written. */
const isUnwritten = (bytes: Buffer) => bytes.includes(0)

function findLast(end: Buffer): { readonly last: ReadLine; readonly until: number } | undefined {
  for (let until = end.lastIndexOf(LINE_FEED); until !== -1; ) {
    const before = until === 0 ? -1 : end.lastIndexOf(LINE_FEED, until - 1)
    const line = end.subarray(before + 1, until)
    const last = readLine(line)
    if (last) return { last, until: until + 1 }
    if (!isUnwritten(line)) return undefined
    until = before
  }
  return undefined
}

/** Reads the last line. `empty`: no complete line. Undefined if the file is not an audit file. */
export async function readTail(handle: FileHandle, size: number): Promise<Tail | { empty: Buffer } | undefined> {
  const from = Math.max(0, size - 2 * MAX_LINE)
  const end = await readAt(handle, from, size - from)
  if (from === 0 && !end.includes(LINE_FEED)) {
    // The file is empty or has an incomplete first line.
    const isOurs = '{"seq":'.startsWith(end.toString('latin1', 0, 7)) || isUnwritten(end)
    return isOurs ? { empty: end } : undefined
  }
  const facts = await readFirst(handle)
  const found = findLast(end)
  if (!facts || !found) return undefined
  return { facts, last: found.last, size: from + found.until, torn: end.subarray(found.until) }
}

export async function readTailOf(path: string): Promise<Tail | undefined> {
  const handle = await open(path, 'r')
  try {
    const tail = await readTail(handle, (await handle.stat()).size)
    return tail && 'last' in tail ? tail : undefined
  } finally {
    await handle.close()
  }
}

/** Opens or creates a file for appending. Throws a StartError for other content. */
export async function openTail(path: string, mode: number) {
  const handle = await open(path, 'a+', mode)
  try {
    const info = await handle.stat()
    const tail = info.isFile() ? await readTail(handle, info.size) : undefined
    if (!tail) throw await strangeFile(path, info.isFile())
    return { handle, tail, bornAt: info.birthtimeMs || Date.now() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function strangeFile(path: string, isFile: boolean): Promise<StartError> {
  const stop = (what: string) => new StartError('MH2203', what, { exitCode: 2 })
  if (!isFile) return stop(`${path} is not a regular file: set another \`file\` for the audit`)
  let lines = 0
  for await (const { number, bytes } of linesOf(path)) {
    if (number === 1 && !factsIn(bytes && readLine(bytes)))
      return stop(`${path} is not an audit file: set another \`file\` for the audit`)
    lines = number
  }
  const look = `check it with: mcp-host audit verify ${path}`
  return stop(
    `${path} is an audit file, but its last line ${lines} was written by another program. ` +
      `Nothing was changed; ${look}. To start, move the file away (a new file starts a new chain), or remove the foreign lines`,
  )
}
