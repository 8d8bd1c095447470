// Destinations of log lines: a file, reopened after rotation, or a stream.
import { closeSync, fstatSync, openSync, readSync, type Stats, statSync, write } from 'node:fs'
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'

/** File mode without access for other users. */
const MODE = 0o640
/** Interval of the check for a renamed or removed file, milliseconds. */
const LOOK = 1_000

const writeTo = promisify(write)

export interface Destination {
  /** Writes from this offset. Returns the number of bytes written, at least one. */
  write(bytes: Buffer, from: number): Promise<number>
  close(): void
}

const sameFile = (one: Stats, other: Stats) => one.ino === other.ino && one.dev === other.dev

const openAppending = (file: string) => openSync(file, 'a', MODE)

const LINE_FEED = Buffer.from('\n')

/** True if the last line is incomplete, after a crash or on a full disk. */
function endsTorn(file: string, opened: Stats): boolean {
  if (!opened.isFile() || opened.size === 0) return false
  let fd: number | undefined
  try {
    fd = openSync(file, 'r')
    const last = Buffer.alloc(1)
    return readSync(fd, last, 0, 1, opened.size - 1) === 1 && !last.equals(LINE_FEED)
  } catch {
    return false
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

export function toFile(file: string): Destination {
  let fd = openAppending(file)
  let opened = fstatSync(fd)
  let isTorn = endsTorn(file, opened)
  let lookedAt = performance.now()

  function follow() {
    if (performance.now() - lookedAt < LOOK) return
    lookedAt = performance.now()
    const found = statSync(file, { throwIfNoEntry: false })
    if (found && sameFile(found, opened)) return
    const next = openAppending(file)
    closeSync(fd)
    fd = next
    opened = fstatSync(fd)
    isTorn = endsTorn(file, opened)
  }

  return {
    async write(bytes, from) {
      follow()
      if (isTorn) {
        await writeTo(fd, LINE_FEED)
        isTorn = false
      }
      const { bytesWritten } = await writeTo(fd, bytes, from)
      return bytesWritten
    },
    close: () => closeSync(fd),
  }
}

/** Uses the stream's own queue: a direct write to a pipe would block a thread. */
export const toStream = (stream: Writable): Destination => ({
  write: (bytes, from) =>
    new Promise((resolve, reject) => {
      stream.write(bytes.subarray(from), error => (error ? reject(error) : resolve(bytes.length - from)))
    }),
  close: () => undefined,
})
