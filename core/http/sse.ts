// Server-Sent Events on a response: headers that proxies respect, one event a message, comments that keep it open,
// and a bound on what a reader who does not read may cost.
import type { ServerResponse } from 'node:http'
import { MAX_WAITING } from './limits.ts'

/** A comment goes out on every open stream this often, milliseconds. */
export const KEEP_ALIVE_INTERVAL = 15_000
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
  /** Resolves once what was sent is on its way, or the stream is closed: for those who have much to send at once. */
  drained(): Promise<void>
}

/** Open streams share one timer. */
const open = new Set<ServerResponse>()
let timer: NodeJS.Timeout | undefined

/** How many there are in this process. */
export const openStreams = (): number => open.size

function keepAlive() {
  for (const res of open) if (res.writableLength < MAX_WAITING) res.write(': keep-alive\n\n')
}

function forget(res: ServerResponse) {
  open.delete(res)
  if (open.size > 0 || timer === undefined) return
  clearInterval(timer)
  timer = undefined
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

/** Turns a response into an event stream; its headers leave at once. */
export function openEventStream(res: ServerResponse, { headers, log }: EventStreamOptions): EventStream {
  res.writeHead(200, headers ? { ...HEADERS, ...headers } : HEADERS)
  res.flushHeaders()
  open.add(res)
  whenClosed(res, () => forget(res))
  timer ??= setInterval(keepAlive, KEEP_ALIVE_INTERVAL).unref()

  // `res.writable` stays true whatever happens to the response.
  const isClosed = () => res.destroyed || res.writableEnded

  function write(text: string): boolean {
    if (isClosed()) return false
    // What waited before counts: one message alone, however large, says nothing about its reader.
    if (res.writableLength <= MAX_WAITING) {
      res.write(text)
      return true
    }
    log.warn({ waiting: res.writableLength }, 'closed a stream whose reader does not read')
    res.destroy()
    return false
  }

  return {
    send: (message, id) =>
      write(
        id === undefined ? `event: message\ndata: ${message}\n\n` : `event: message\nid: ${id}\ndata: ${message}\n\n`,
      ),
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
      forget(res)
      res.end()
    },
    endWith(message) {
      forget(res)
      res.end(`event: message\ndata: ${message}\n\n`)
    },
    get closed() {
      return isClosed()
    },
    async drained() {
      if (isClosed() || !res.writableNeedDrain) return
      await new Promise<void>(resolve => {
        const settle = () => {
          res.off('drain', settle).off('close', settle)
          resolve()
        }
        res.once('drain', settle).once('close', settle)
      })
    },
  }
}
