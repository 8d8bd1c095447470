// Server-Sent Events on a response: headers that proxies respect, one event a message, comments that keep it open,
// and a bound on what a reader who does not read may cost.
import type { ServerResponse } from 'node:http'

/** A comment goes out on every open stream this often, milliseconds. */
export const KEEP_ALIVE_INTERVAL = 15_000
/** Bytes that may wait for one reader when the next message comes; past it the stream is closed. */
export const MAX_WAITING = 4 * 1024 * 1024

const HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // nginx and its kin would hold events back (basic/transports/streamable-http, "Receiving Messages").
  'X-Accel-Buffering': 'no',
} as const

export interface EventStream {
  /** Sends a message as one event. False when the stream is closed, or was closed because nobody reads it. */
  send(message: string): boolean
  /** Sends what waits and then, whatever it measures, the last message; ends the response. */
  end(message?: string): void
}

const toEvent = (message: string) => `event: message\ndata: ${message}\n\n`

/** Open streams share one timer. */
const open = new Set<ServerResponse>()
let timer: NodeJS.Timeout | undefined

function keepAlive() {
  for (const res of open) if (res.writableLength < MAX_WAITING) res.write(': keep-alive\n\n')
}

function forget(res: ServerResponse) {
  open.delete(res)
  if (open.size > 0 || timer === undefined) return
  clearInterval(timer)
  timer = undefined
}

/** Turns a response into an event stream; its headers leave at once. `stalled` is told of a reader who does not read. */
export function openEventStream(res: ServerResponse, stalled: (waiting: number) => void): EventStream {
  res.writeHead(200, HEADERS)
  res.flushHeaders()
  open.add(res)
  res.once('close', () => forget(res))
  timer ??= setInterval(keepAlive, KEEP_ALIVE_INTERVAL).unref()
  return {
    send(message) {
      // `writable` stays true on a response that has ended.
      if (res.writableEnded || res.destroyed) return false
      // Measured before it grows: one large message does not make its reader a slow one.
      if (res.writableLength > MAX_WAITING) {
        stalled(res.writableLength)
        res.destroy()
        return false
      }
      res.write(toEvent(message))
      return true
    },
    end(message) {
      forget(res)
      res.end(message === undefined ? undefined : toEvent(message))
    },
  }
}
