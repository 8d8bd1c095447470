// The HTTP server of a host: Node's, with time limits, one request at a time per connection, and limits for slow readers.

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, systemClock, type Timer } from './clock.ts'

/** Refused pipelined requests after which the connection closes at once. */
export const MAX_PIPELINED = 10
/** Bytes that a slow reader must receive within `http.writeTimeout`. */
const MIN_PROGRESS = 64 * 1024
/** Bytes that can wait for all readers together before idle readers are closed. */
const MAX_WAITING_BYTES = 256 * 1024 * 1024

/** Milliseconds. */
export interface TimeLimits {
  readonly requestTimeout: number
  readonly keepAliveTimeout: number
  readonly writeTimeout: number
}

export interface ServerEvents {
  pipelined(address: string | undefined): void
  slowReaders(readers: SlowReaders): void
}

export type HttpServerFactory = (options: ServerOptions, serve: RequestListener) => Server

/** Creates a server that does not listen yet. `create`: `createServer` of `node:http` or `node:https`. */
export function createHttpServer(
  serve: RequestListener,
  { requestTimeout, keepAliveTimeout, writeTimeout }: TimeLimits,
  events: ServerEvents,
  create: HttpServerFactory = createServer,
  clock?: Clock,
) {
  const refusePipelined = createPipelineRefusal(({ remoteAddress }) => events.pipelined(remoteAddress))
  const listener: RequestListener = (req, res) => {
    if (!res.socket) return refusePipelined(req, res)
    if (![undefined, '100-continue'].includes(req.headers.expect?.toLowerCase()))
      return void res.writeHead(417, { Connection: 'close' }).end()
    closeIfUnread(req, res)
    return serve(req, res)
  }
  const server = create(
    {
      requestTimeout,
      headersTimeout: requestTimeout,
      keepAliveTimeout,
      // With this option, a repeated Host, Content-Type or Authorization makes the header invalid.
      joinDuplicateHeaders: true,
      // Interval of Node's check for these timeouts.
      connectionsCheckingInterval: Math.min(30_000, Math.max(100, requestTimeout / 4)),
    },
    listener,
  )
  server.on('checkExpectation', listener)
  // Data that arrived while the event loop was blocked is read before `setImmediate` runs: it can be a request.
  server.on('timeout', (socket: Socket) => {
    const { bytesRead } = socket
    setImmediate(() => socket.bytesRead === bytesRead && socket.destroy())
  })
  const { watch, waiting } = watchReaders({ timeout: writeTimeout, clock }, readers => events.slowReaders(readers))
  server.on(isSecure(server) ? 'secureConnection' : 'connection', (socket: Socket) => {
    // `remoteAddress` is undefined after a connection reset unless it was read before.
    if (socket.remoteAddress === undefined) socket.destroy()
    watch(socket, socket)
  })
  return { server, refusePipelined, watch, waiting }
}

export const isSecure = (server: object): boolean => 'setSecureContext' in server

/** Maximum bytes of an unused body that Node reads, to keep the connection. */
const SMALL_BODY = 64 * 1024
/** How long a client that is still sending can take to read the response, milliseconds. */
const LINGER = 2_000

/**
 * Closes the connection after a response to an unread body. `Connection: close` would reset it while the client still sends, and
 * many clients then lose the response.
 */
export function closeIfUnread(req: IncomingMessage, res: ServerResponse): void {
  const { headers } = req
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= SMALL_BODY) return
  res.prependOnceListener('finish', () => {
    if (req.complete || req.readableFlowing) return
    const { socket } = req
    // Runs after the ticks in which Node resumes the connection. Node then discards the rest of the body without backpressure.
    setImmediate(() => {
      socket.pause()
      socket.end()
    })
    const timer = setTimeout(() => socket.destroy(), LINGER).unref()
    socket.once('close', () => clearTimeout(timer))
  })
}

/**
 * Refuses requests without a socket, which are pipelined, and closes the connection after the current response, or at once above
 * `MAX_PIPELINED`. Node would start all of them and emit no `close` for those whose client disconnects early.
 */
export function createPipelineRefusal(
  onRefused: (socket: Socket) => void,
): (req: IncomingMessage, res: ServerResponse) => void {
  const counts = new WeakMap<Socket, number>()
  return (req, res) => {
    const { socket } = req
    const count = (counts.get(socket) ?? 0) + 1
    counts.set(socket, count)
    if (count > MAX_PIPELINED) return void socket.destroy()
    req.resume()
    res.writeHead(503, { 'Content-Length': 0, 'Retry-After': 0, Connection: 'close' }).end()
    if (count === 1) onRefused(socket)
  }
}

const CHECK_INTERVAL = 1_000

interface Reader {
  readonly socket: Socket
  mark: { readonly received: number; readonly since: number; lastReceived: number } | undefined
}

export interface SlowReaders {
  readonly connections: number
  readonly waiting: number
}

interface SlowReaderLimits {
  readonly timeout: number
  readonly maxTotal?: number
  readonly clock?: Clock | undefined
}

/**
 * Closes slow readers. Within `timeout`, a reader must receive all pending bytes or complete writes of `MIN_PROGRESS` bytes. Above
 * `maxTotal` pending bytes, readers without progress since the last check are closed, largest first.
 */
export function watchReaders(
  { timeout, maxTotal = MAX_WAITING_BYTES, clock = systemClock }: SlowReaderLimits,
  onClosed: (readers: SlowReaders) => void,
) {
  const readers = new Set<Reader>()
  let timer: Timer | undefined

  function remove(reader: Reader) {
    readers.delete(reader)
    if (readers.size > 0) return
    clock.clear(timer)
    timer = undefined
  }

  function isSlow(reader: Reader, now: number, idle: Socket[]): boolean {
    const { socket, mark } = reader
    const received = socket.bytesWritten - socket.writableLength
    if (!mark || received - mark.received >= MIN_PROGRESS) {
      reader.mark = { received, since: now, lastReceived: received }
      return false
    }
    if (mark.lastReceived === received) idle.push(socket)
    mark.lastReceived = received
    return now - mark.since >= timeout
  }

  function checkReaders() {
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
    if (slow.length > 0 || waiting > maxTotal) closeReaders(slow, idle, waiting)
  }

  function closeReaders(slow: readonly Socket[], idle: readonly Socket[], waiting: number) {
    let pending = waiting
    let connections = 0
    const close = (socket: Socket) => {
      pending -= socket.writableLength
      connections++
      socket.destroy()
    }
    for (const socket of slow) close(socket)
    for (const socket of [...idle].sort((a, b) => b.writableLength - a.writableLength)) {
      if (pending <= maxTotal) break
      if (!socket.destroyed) close(socket)
    }
    if (connections > 0) onClosed({ connections, waiting: waiting - pending })
  }

  return {
    watch(socket: Socket, owner: Pick<Socket | ServerResponse, 'once'>) {
      const reader: Reader = { socket, mark: undefined }
      readers.add(reader)
      owner.once('close', () => remove(reader))
      timer ??= clock.setInterval(checkReaders, Math.min(CHECK_INTERVAL, Math.max(50, timeout / 4))).unref()
    },
    waiting: () => [...readers].reduce((bytes, { socket }) => bytes + socket.writableLength, 0),
  }
}
