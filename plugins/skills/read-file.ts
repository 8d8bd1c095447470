// Reads the files of skills: never more than a skill may have, never what is no plain file or lies elsewhere by now, and with
// the digest of the very bytes that were read.
import { createHash } from 'node:crypto'
import { constants, type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises'
import { MAX_BYTES } from './limits.ts'

const CHUNK = 64 * 1024
/** To open a FIFO that somebody put there must not wait for its writer. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)
/** How often a path is compared where the system does not tell what is open: to get through, it has to change with each. */
const ROUNDS = 4
/** Where Linux says which file each open one is. */
const OPEN_FILES = '/proc/self/fd'

/** A file, as it was read. */
export interface ReadFile {
  /** SHA-256 of its bytes, as `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  readonly size: number
  /** Its bytes are UTF-8 and none of them is 0. */
  readonly isText: boolean
  /** Undefined: they are more than were to be kept. */
  readonly bytes: Buffer | undefined
  /** The device and number of the file: the same for all of its hard links. */
  readonly id: string
}

type FileId = { readonly dev: bigint; readonly ino: bigint }

/** Some file systems have no numbers: there each path is a file of its own. */
const idOf = ({ dev, ino }: FileId, path: string) => (ino === 0n ? path : `${dev}:${ino}`)

/** Whether the path, links and all, leads to the open file each time that it is asked for. */
async function isStillAt(path: string, opened: FileId): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    // Some disks compose names in another way than they are asked for.
    if ((await realpath(path)).normalize('NFC') !== path.normalize('NFC')) return false
    const found = await lstat(path, { bigint: true })
    if (found.dev !== opened.dev || found.ino !== opened.ino) return false
  }
  return true
}

/**
 * Throws where what was opened is not the file at this path, which has no link in it: between its walk and its opening somebody
 * may have put a link in the place of the file, or of a folder above it.
 */
async function checkPlace(handle: FileHandle, path: string, opened: FileId, openFiles: string) {
  // The system's own word, which nothing can be swapped behind.
  const told = await readlink(`${openFiles}/${handle.fd}`).catch(() => undefined)
  if (told === undefined ? await isStillAt(path, opened) : told === path) return
  throw new Error('it was moved, or became a link, while it was read')
}

/** Whether bytes that come in pieces are UTF-8. */
function createTextCheck() {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isText = true
  const decode = (bytes: Buffer | undefined) => {
    try {
      decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      isText = false
    }
  }
  return {
    take(bytes: Buffer) {
      if (isText) decode(bytes)
      if (isText && bytes.includes(0)) isText = false
    },
    end() {
      if (isText) decode(undefined)
      return isText
    },
  }
}

/** In memory of their own: a small part of what is shared would keep all of it. */
function joined(parts: readonly Buffer[], size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const part of parts) at += part.copy(bytes, at)
  return bytes
}

async function readAll(handle: FileHandle, path: string, keep: number, openFiles: string): Promise<ReadFile> {
  const found = await handle.stat({ bigint: true })
  if (!found.isFile()) throw new Error('it is no plain file any more')
  await checkPlace(handle, path, found, openFiles)
  const hash = createHash('sha256')
  const text = createTextCheck()
  const kept: Buffer[] = []
  const chunk = Buffer.allocUnsafe(Math.min(CHUNK, Number(found.size) + 1))
  let size = 0
  for (;;) {
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, null)
    if (bytesRead === 0) break
    const bytes = chunk.subarray(0, bytesRead)
    size += bytesRead
    if (size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes by now`)
    hash.update(bytes)
    text.take(bytes)
    if (size <= keep) kept.push(Buffer.from(bytes))
    else kept.length = 0
  }
  const digest = `sha256:${hash.digest('hex')}`
  const bytes = size <= keep ? joined(kept, size) : undefined
  return { digest, size, isText: text.end(), bytes, id: idOf(found, path) }
}

/**
 * Reads a file at a path without links, and gives its bytes where they are at most `keep`. `openFiles`: where the system says
 * what is open, if it does.
 */
export async function readFile(path: string, keep: number, openFiles = OPEN_FILES): Promise<ReadFile> {
  const handle = await open(path, READ)
  try {
    return await readAll(handle, path, keep, openFiles)
  } finally {
    await handle.close()
  }
}

/** Runs `task` for each, eight at a time. Rejects with what the first of them does. */
export async function forEachOf<Item>(items: Iterable<Item>, task: (item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items].reverse()
  const work = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await task(item)
  }
  await Promise.all(Array.from({ length: 8 }, work))
}
