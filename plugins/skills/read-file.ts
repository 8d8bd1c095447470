// Reads the files of skills with their digests: only plain files, only at the path that was walked, and up to a limit.
import { createHash } from 'node:crypto'
import { constants, type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises'

/** Maximum bytes of the files of a skill (SEP-2640, "Limits"). */
export const MAX_BYTES = 16 * 1024 * 1024
const CHUNK = 64 * 1024
/** Opening a FIFO must not block until a writer opens it. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)
/** Maximum path comparisons if the system does not report the open file. */
const ROUNDS = 4
const OPEN_FILES = '/proc/self/fd'

export interface ReadFile {
  /** SHA-256 of its bytes, as `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  readonly size: number
  /** True if the bytes are UTF-8 without NUL. */
  readonly isText: boolean
  readonly bytes: Buffer | undefined
  /** Device and inode: the same for all hard links. */
  readonly id: string
}

type FileId = { readonly dev: bigint; readonly ino: bigint }

/** Identifies a file by its path on file systems without inodes. */
const idOf = ({ dev, ino }: FileId, path: string) => (ino === 0n ? path : `${dev}:${ino}`)

async function isStillAt(path: string, opened: FileId): Promise<boolean> {
  for (let round = 0; round < ROUNDS; round++) {
    // Some file systems return names in another Unicode normalization form.
    if ((await realpath(path)).normalize('NFC') !== path.normalize('NFC')) return false
    const found = await lstat(path, { bigint: true })
    if (found.dev !== opened.dev || found.ino !== opened.ino) return false
  }
  return true
}

/** Detects a link that replaced the file or one of its folders after the walk. */
async function checkFile(handle: FileHandle, path: string, opened: FileId, openFiles: string) {
  // The system reports the path of the open file, without a race.
  const openedPath = await readlink(`${openFiles}/${handle.fd}`).catch(() => undefined)
  if (openedPath === undefined ? await isStillAt(path, opened) : openedPath === path) return
  throw new Error('it was moved, or became a link, while it was read')
}

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

/** Copies to its own memory, because a slice would keep the shared buffer. */
function joined(parts: readonly Buffer[], size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const part of parts) at += part.copy(bytes, at)
  return bytes
}

async function readAll(handle: FileHandle, path: string, keep: number, openFiles: string): Promise<ReadFile> {
  const found = await handle.stat({ bigint: true })
  if (!found.isFile()) throw new Error('it is no longer a regular file')
  await checkFile(handle, path, found, openFiles)
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

/** Reads a file and returns the bytes if they are at most `keep`. `openFiles`: folder with links to open files. */
export async function readFile(path: string, keep: number, openFiles = OPEN_FILES): Promise<ReadFile> {
  const handle = await open(path, READ)
  try {
    return await readAll(handle, path, keep, openFiles)
  } finally {
    await handle.close()
  }
}

/** Runs `task` for each item, eight at a time. Rejects with the first error. */
export async function forEachOf<Item>(items: Iterable<Item>, task: (item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items].reverse()
  const work = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await task(item)
  }
  await Promise.all(Array.from({ length: 8 }, work))
}
