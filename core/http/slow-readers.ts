// Ends connections whose readers leave what was sent to them: an answer, a document, an event stream alike. Nothing is
// asked of a response: one look a second at what each connection still has to send.
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, systemClock, type Timer } from './clock.ts'
import { LEAST_TAKEN, MAX_WAITING_IN_ALL } from './limits.ts'
import { onConnection } from './on-connection.ts'

/** How often they are looked at, at most, milliseconds. */
const LOOK_INTERVAL = 1_000

/** Where a reader was when it last kept up. */
interface Mark {
  readonly taken: number
  readonly at: number
  /** At the last look. */
  lately: number
}

interface Reader {
  readonly socket: Socket
  /** Undefined while nothing waits for it. */
  mark: Mark | undefined
}

/** Bytes of completed writes. A write is complete once the client's side has received all of it. */
const takenBy = ({ bytesWritten, writableLength }: Socket): number => bytesWritten - writableLength

export interface SlowReaders {
  readonly connections: number
  /** Bytes that waited for them. */
  readonly waiting: number
}

export interface SlowReaderBounds {
  /** Milliseconds. */
  readonly timeout: number
  /** Bytes that may wait for all readers together. Default `MAX_WAITING_IN_ALL`. */
  readonly inAll?: number
  /** Default: the system's. */
  readonly clock?: Clock | undefined
}

export interface ReaderWatch {
  /** Watches a connection until `over` is closed: the connection itself, or what is answered on it. */
  watch(socket: Socket, over: Pick<Socket | ServerResponse, 'once'>): void
  /** Bytes that wait for all of them now. */
  waiting(): number
}

/**
 * Closes slow readers. Within `timeout`, a reader must receive everything that waits for it, or complete writes of
 * `LEAST_TAKEN` bytes. A response is one write, so all of it must be received in that time. If more than `inAll` bytes wait,
 * readers that received nothing since the last check are closed, those with the most bytes first.
 */
export function watchReaders(
  { timeout, inAll = MAX_WAITING_IN_ALL, clock = systemClock }: SlowReaderBounds,
  ended: (readers: SlowReaders) => void,
): ReaderWatch {
  const readers = new Set<Reader>()
  let timer: Timer | undefined

  function forget(reader: Reader) {
    readers.delete(reader)
    if (readers.size > 0) return
    clock.clear(timer)
    timer = undefined
  }

  /** True for a reader who does not keep up. `idle` gets those who took nothing lately. */
  function isSlow(reader: Reader, now: number, idle: Socket[]): boolean {
    const { socket, mark } = reader
    const taken = takenBy(socket)
    if (!mark || taken - mark.taken >= LEAST_TAKEN) {
      reader.mark = { taken, at: now, lately: taken }
      return false
    }
    if (mark.lately === taken) idle.push(socket)
    mark.lately = taken
    return now - mark.at >= timeout
  }

  function look() {
    const now = clock.monotonic()
    const slow: Socket[] = []
    const idle: Socket[] = []
    let waiting = 0
    for (const reader of readers) {
      const { writableLength } = reader.socket
      waiting += writableLength
      if (writableLength === 0) reader.mark = undefined
      else if (isSlow(reader, now, idle)) slow.push(reader.socket)
    }
    if (slow.length === 0 && waiting <= inAll) return
    end(slow, idle, waiting)
  }

  function end(slow: readonly Socket[], idle: readonly Socket[], waiting: number) {
    let left = waiting
    let connections = 0
    const close = (socket: Socket) => {
      left -= socket.writableLength
      connections++
      socket.destroy()
    }
    for (const socket of slow) close(socket)
    for (const socket of [...idle].sort((a, b) => b.writableLength - a.writableLength)) {
      if (left <= inAll) break
      if (!socket.destroyed) close(socket)
    }
    if (connections > 0) ended({ connections, waiting: waiting - left })
  }

  return {
    watch(socket, over) {
      const reader = { socket, mark: undefined }
      readers.add(reader)
      over.once('close', () => forget(reader))
      timer ??= clock.setInterval(look, Math.min(LOOK_INTERVAL, Math.max(50, timeout / 4))).unref()
    },
    waiting: () => [...readers].reduce((bytes, { socket }) => bytes + socket.writableLength, 0),
  }
}

/** Watches every connection of a server; gives the bytes that wait for them now. */
export function endSlowReaders(
  server: Server,
  bounds: SlowReaderBounds,
  ended: (readers: SlowReaders) => void,
): ReaderWatch['waiting'] {
  const { watch, waiting } = watchReaders(bounds, ended)
  onConnection(server, socket => watch(socket, socket))
  return waiting
}
