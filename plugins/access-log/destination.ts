// Where lines go: a file, followed by its path when somebody renames or removes it, as logrotate does; or a stream, whose
// reader may not read. For lines.ts.
import { closeSync, fstatSync, openSync, readSync, type Stats, statSync, write } from 'node:fs'
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'

/** Of a new file: no other user of the machine reads it. */
const MODE = 0o640
/** How often it is looked whether the path still leads to the file, milliseconds. */
const LOOK = 1_000

const writeTo = promisify(write)

export interface Destination {
  /** Writes from there on; gives the bytes that were taken, at least one. Rejects as the system does. */
  write(bytes: Buffer, from: number): Promise<number>
  close(): void
}

const sameFile = (one: Stats, other: Stats) => one.ino === other.ino && one.dev === other.dev

const openAppending = (file: string) => openSync(file, 'a', MODE)

const LINE_FEED = Buffer.from('\n')

/** Whether the last line has no end: whoever wrote it was killed, or its disk was full. A file that cannot be read is taken as whole. */
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

/** `file`: absolute. Throws where it cannot be opened. */
export function toFile(file: string): Destination {
  let fd = openAppending(file)
  let opened = fstatSync(fd)
  let isTorn = endsTorn(file, opened)
  let lookedAt = performance.now()

  /** Another file may be at its path by now, or none. */
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

/** Node's own stream: what a pipe does not take waits there, where a write by its number would hold a thread, and the end of the process. */
export const toStream = (stream: Writable): Destination => ({
  write: (bytes, from) =>
    new Promise((resolve, reject) => {
      stream.write(bytes.subarray(from), error => (error ? reject(error) : resolve(bytes.length - from)))
    }),
  close: () => undefined,
})
