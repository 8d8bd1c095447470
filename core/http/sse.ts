// Server-Sent Events: proxy headers, keep-alive comments and a limit for slow readers.
import type { ServerResponse } from 'node:http'

/** Maximum pending bytes of a stream when the next message arrives. The event store keeps more, so clients can resume. */
export const MAX_PENDING = 1024 * 1024
/** Minimum length of a message that is encoded to bytes at once, outside the heap. */
export const LARGE_TEXT = 64 * 1024

export const KEEP_ALIVE_INTERVAL = 15_000
/** Keep-alive comments are sent in groups: 10,000 at once would block the event loop for 150 ms. */
export const KEEP_ALIVE_GROUPS = 30
/** Reconnection time of clients, milliseconds. */
export const RETRY = 1_000

const HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // Disables buffering in nginx (basic/transports/streamable-http, "Receiving Messages").
  'X-Accel-Buffering': 'no',
} as const

export interface EventStream {
  /** Sends a message as an event. False if the stream is closed, also because of a slow reader. */
  send(message: string, id?: string): boolean
  /** Sends any event; `data` must be one line. */
  event(fields: {
    readonly event?: string
    readonly id?: string
    readonly retry?: number
    readonly data: string
  }): boolean
  end(retry?: number): void
  /** Sends the last message regardless of pending bytes, and ends the response. */
  endWith(message: string): void
  readonly closed: boolean
  whenClosed(task: () => void): void
  drained(): Promise<void>
}

type KeepAliveGroup = Set<ServerResponse>

const groups: readonly KeepAliveGroup[] = Array.from({ length: KEEP_ALIVE_GROUPS }, () => new Set<ServerResponse>())
let open = 0
let timer: NodeJS.Timeout | undefined
let lastServedGroup = 0
let lastJoinedGroup = 0

export const openStreams = (): number => open

function keepAlive() {
  lastServedGroup = (lastServedGroup + 1) % KEEP_ALIVE_GROUPS
  for (const res of groups[lastServedGroup] as KeepAliveGroup)
    if (res.writableLength < MAX_PENDING) res.write(': keep-alive\n\n')
}

function joinGroup(res: ServerResponse): () => void {
  if (timer === undefined) {
    timer = setInterval(keepAlive, KEEP_ALIVE_INTERVAL / KEEP_ALIVE_GROUPS).unref()
    lastJoinedGroup = lastServedGroup + 1
  }
  // Counts backwards, so that a new stream first waits a whole interval.
  lastJoinedGroup = (lastJoinedGroup + KEEP_ALIVE_GROUPS - 1) % KEEP_ALIVE_GROUPS
  const group = groups[lastJoinedGroup] as KeepAliveGroup
  group.add(res)
  open++
  return () => {
    if (!group.delete(res)) return
    open--
    if (open > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export interface EventStreamOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Receives a warning when the stream of a slow reader is closed. */
  readonly log: { warn(fields: { readonly code: string; readonly waiting: number }, message: string): void }
}

/** Runs `task` when either end closes the response; asynchronously if it is already closed. */
export function whenClosed(res: ServerResponse, task: () => void): void {
  if (res.destroyed) process.nextTick(task)
  else res.on('close', task)
}

function encodeEvent(message: string, id?: string): string | Buffer {
  const head = id === undefined ? 'event: message\ndata: ' : `event: message\nid: ${id}\ndata: `
  if (message.length <= LARGE_TEXT) return `${head}${message}\n\n`
  const bytes = Buffer.allocUnsafe(head.length + Buffer.byteLength(message) + 2)
  bytes.write(message, bytes.write(head, 'latin1'))
  bytes.write('\n\n', bytes.length - 2)
  return bytes
}

async function whenDrained(res: ServerResponse): Promise<void> {
  if (!res.writableNeedDrain) return
  await new Promise<void>(resolve => {
    const settle = () => {
      res.off('drain', settle)
      res.off('close', settle)
      resolve()
    }
    res.once('drain', settle)
    res.once('close', settle)
  })
}

export function openEventStream(res: ServerResponse, { headers, log }: EventStreamOptions): EventStream {
  res.writeHead(200, headers ? { ...HEADERS, ...headers } : HEADERS)
  res.flushHeaders()
  const leaveGroup = joinGroup(res)
  whenClosed(res, leaveGroup)

  // `res.writable` stays true after the connection is closed.
  const isClosed = () => res.destroyed || res.writableEnded

  function canWrite(): boolean {
    if (isClosed()) return false
    if (res.writableLength <= MAX_PENDING) return true
    log.warn(
      { code: 'MH1309', waiting: res.writableLength },
      'closed a stream, because its client reads more slowly than the host sends',
    )
    res.destroy()
    return false
  }

  function write(text: string): boolean {
    if (!canWrite()) return false
    res.write(text)
    return true
  }

  return {
    send(message, id) {
      if (!canWrite()) return false
      res.write(encodeEvent(message, id))
      return true
    },
    event({ event, id, retry, data }) {
      const lines = [
        ...(event === undefined ? [] : [`event: ${event}`]),
        ...(id === undefined ? [] : [`id: ${id}`]),
        ...(retry === undefined ? [] : [`retry: ${retry}`]),
        `data: ${data}`,
      ]
      return write(`${lines.join('\n')}\n\n`)
    },
    end(retry) {
      if (retry !== undefined) write(`retry: ${retry}\n\n`)
      leaveGroup()
      res.end()
    },
    endWith(message) {
      leaveGroup()
      res.end(encodeEvent(message))
    },
    get closed() {
      return isClosed()
    },
    whenClosed: task => whenClosed(res, task),
    drained: async () => (isClosed() ? undefined : whenDrained(res)),
  }
}
