// Reads the files of skills: never more than a skill may have, never what is no plain file, and with the digest of the very
// bytes that were read.
import { createHash } from 'node:crypto'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { MAX_BYTES } from './limits.ts'

const CHUNK = 64 * 1024
/** To open a FIFO that somebody put there must not wait for its writer. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/** A file, as it was read. */
export interface ReadFile {
  /** SHA-256 of its bytes, as `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  readonly size: number
  /** Its bytes are UTF-8 and none of them is 0. */
  readonly isText: boolean
  /** Undefined: they are more than were to be kept. */
  readonly bytes: Buffer | undefined
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

async function readAll(handle: FileHandle, keep: number): Promise<ReadFile> {
  const found = await handle.stat()
  if (!found.isFile()) throw new Error('it is no plain file any more')
  const hash = createHash('sha256')
  const text = createTextCheck()
  const kept: Buffer[] = []
  const chunk = Buffer.allocUnsafe(Math.min(CHUNK, found.size + 1))
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
  return { digest, size, isText: text.end(), bytes: size <= keep ? joined(kept, size) : undefined }
}

/** Reads a file, and gives its bytes where they are at most `keep`. */
export async function readFile(path: string, keep: number): Promise<ReadFile> {
  const handle = await open(path, READ)
  try {
    return await readAll(handle, keep)
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
