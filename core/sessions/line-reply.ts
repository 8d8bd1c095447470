// How the answer to one request travels over a line that its session's other requests use as well. For transports whose
// connection is the session's: stdio, the stream of HTTP+SSE, a socket.
import type { SessionReply } from './serve.ts'

/** A way to one client. */
export interface ReplyLine {
  /** A message that is no answer. */
  send(message: string): void
  /** An answer; default: as `send`. */
  respond?(message: string): void
}

/**
 * The reply to one request over a line: at most one answer leaves, and nothing after it or after a cancellation.
 * `disconnect` does nothing, since the line does not close for one request, and nor does `hold`: an answer has no status there.
 */
export function createLineReply(line: ReplyLine): Required<SessionReply> {
  let abort: AbortController | undefined
  let reason: Error | undefined
  let over = false
  return {
    send(message) {
      if (!over) line.send(message)
    },
    respond(answer) {
      if (over) return
      over = true
      const message = String(answer)
      if (line.respond) line.respond(message)
      else line.send(message)
    },
    signal() {
      abort ??= new AbortController()
      if (reason && !abort.signal.aborted) abort.abort(reason)
      return abort.signal
    },
    cancelled: () => reason !== undefined,
    cancel(why) {
      over = true
      reason ??= why
      abort?.abort(reason)
    },
    disconnect() {},
    hold: () => () => undefined,
  }
}
