// How the answer to one request travels back: at most one leaves, and nothing after it or after a cancellation.
import type { SessionReply } from '../../core/transport.ts'
import type { Output } from './output.ts'

export interface Reply extends SessionReply {
  /** All goes over one line, which does not close for one request. */
  disconnect(): void
}

export function createReply(output: Output): Reply {
  let abort: AbortController | undefined
  let reason: Error | undefined
  let over = false
  return {
    send: message => {
      if (!over) output.send(message)
    },
    respond(message) {
      if (!over) output.respond(message)
      over = true
    },
    signal() {
      abort ??= new AbortController()
      if (reason && !abort.signal.aborted) abort.abort(reason)
      return abort.signal
    },
    cancel(why) {
      over = true
      reason ??= why
      abort?.abort(reason)
    },
    disconnect() {},
  }
}
