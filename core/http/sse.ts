// Server-Sent Events on a response: headers that proxies respect, one event a message, comments that keep it open,
// and a bound on what a reader who does not read may cost.
import type { ServerResponse } from 'node:http'

/** Maximum bytes that wait for a stream's reader when the next message comes. The event store keeps more, so a client can resume. */
export const MAX_WAITING = 1024 * 1024
/** Characters from which a text waits for its reader as bytes, outside the heap. */
export const LARGE_TEXT = 64 * 1024

/** A comment goes out on every open stream this often, milliseconds. */
export const KEEP_ALIVE_INTERVAL = 15_000
/** Comments go out in so many turns: on 10,000 streams at once they would hold up everybody else for 150 ms. */
export const KEEP_ALIVE_TURNS = 30
/** How long a client should wait before it comes back, milliseconds. */
export const RETRY = 1_000

const HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // nginx and its kin would hold events back (basic/transports/streamable-http, "Receiving Messages").
  'X-Accel-Buffering': 'no',
} as const

/** A response that is an event stream. */
export interface EventStream {
  /** Sends a message as one event. False when the stream is closed, or was closed because nobody reads it. */
  send(message: string, id?: string): boolean
  /** Sends any event; `data` must be one line. */
  event(fields: {
    readonly event?: string
    readonly id?: string
    readonly retry?: number
    readonly data: string
  }): boolean
  /** Tells the client when to come back, where `retry` is given; then ends the response, after what waits. */
  end(retry?: number): void
  /** Sends the last message, whatever waits, and ends the response: the answer of a call is never held back. */
  endWith(message: string): void
  readonly closed: boolean
  /** Runs `task` once it is closed, by either end. */
  whenClosed(task: () => void): void
  /** Resolves once what was sent is on its way, or the stream is closed: for those who have much to send at once. */
  drained(): Promise<void>
}

type Turn = Set<ServerResponse>

/** Open streams share one timer, and are spread over its turns as they come. */
const turns: readonly Turn[] = Array.from({ length: KEEP_ALIVE_TURNS }, () => new Set<ServerResponse>())
let open = 0
let timer: NodeJS.Timeout | undefined
/** The turn that was last, and the one that the last stream was given. */
let lastTurn = 0
let lastGiven = 0

/** How many there are in this process. */
export const openStreams = (): number => open

function keepAlive() {
  lastTurn = (lastTurn + 1) % KEEP_ALIVE_TURNS
  for (const res of turns[lastTurn] as Turn) if (res.writableLength < MAX_WAITING) res.write(': keep-alive\n\n')
}

/** Sends comments on it until the returned function is called. */
function enter(res: ServerResponse): () => void {
  if (timer === undefined) {
    timer = setInterval(keepAlive, KEEP_ALIVE_INTERVAL / KEEP_ALIVE_TURNS).unref()
    lastGiven = lastTurn + 1
  }
  // Backwards: the first of those that come together has the whole interval before it, the next a little less.
  lastGiven = (lastGiven + KEEP_ALIVE_TURNS - 1) % KEEP_ALIVE_TURNS
  const turn = turns[lastGiven] as Turn
  turn.add(res)
  open++
  return () => {
    if (!turn.delete(res)) return
    open--
    if (open > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** What an event stream is opened with. */
export interface EventStreamOptions {
  /** Further response headers. */
  readonly headers?: Readonly<Record<string, string>>
  /** Told of a reader who does not read, with the bytes that wait for it, when the stream is closed for that. */
  readonly log: { warn(fields: { readonly waiting: number }, message: string): void }
}

/** Runs `task` when the response is closed, by either end; soon where it is already, which tells nobody any more. */
export function whenClosed(res: ServerResponse, task: () => void): void {
  if (res.destroyed) process.nextTick(task)
  else res.once('close', task)
}

/** A message as an event. A large one is bytes, made in one go: as text it would be copied whole to be put together. */
function encodeEvent(message: string, id?: string): string | Buffer {
  const head = id === undefined ? 'event: message\ndata: ' : `event: message\nid: ${id}\ndata: `
  if (message.length <= LARGE_TEXT) return `${head}${message}\n\n`
  const bytes = Buffer.allocUnsafe(head.length + Buffer.byteLength(message) + 2)
  bytes.write(message, bytes.write(head, 'latin1'))
  bytes.write('\n\n', bytes.length - 2)
  return bytes
}

/** Resolves once what waits is on its way, or the response is closed. */
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

/** Turns a response into an event stream; its headers leave at once. */
export function openEventStream(res: ServerResponse, { headers, log }: EventStreamOptions): EventStream {
  res.writeHead(200, headers ? { ...HEADERS, ...headers } : HEADERS)
  res.flushHeaders()
  const leave = enter(res)
  whenClosed(res, leave)

  // `res.writable` stays true whatever happens to the response.
  const isClosed = () => res.destroyed || res.writableEnded

  /**
   * False, and the stream is closed, where too much waits for its reader: what waited before, for one message alone,
   * however large, says nothing about its reader.
   */
  function canWrite(): boolean {
    if (isClosed()) return false
    if (res.writableLength <= MAX_WAITING) return true
    log.warn({ waiting: res.writableLength }, 'closed a stream whose reader does not read')
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
      leave()
      res.end()
    },
    endWith(message) {
      leave()
      res.end(encodeEvent(message))
    },
    get closed() {
      return isClosed()
    },
    whenClosed: task => whenClosed(res, task),
    drained: async () => (isClosed() ? undefined : whenDrained(res)),
  }
}
