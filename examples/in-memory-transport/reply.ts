// How the answer to one request travels back over its client's end.
import type { SessionReply } from 'mcp-host/transport'
import type { End } from './pair.ts'

/** The way of one request's answer: at most one leaves, and nothing after it or after a cancellation. */
export function createReply(end: End): SessionReply {
  const abort = new AbortController()
  let over = false
  return {
    send: message => {
      if (!over) end.send(message)
    },
    respond(message) {
      if (!over) end.send(message)
      over = true
    },
    signal: () => abort.signal,
    cancel(reason) {
      over = true
      abort.abort(reason)
    },
  }
}
