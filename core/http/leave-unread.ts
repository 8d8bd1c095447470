// Stops reading a request body that was rejected: Node would read all of it to find the next request.
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Maximum bytes of an unused body that Node reads, to keep the connection. */
const SMALL_BODY = 64 * 1024
/** How long a client that is still sending can take to read the response, milliseconds. */
const LINGER = 2_000

const isSmall = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= SMALL_BODY

/**
 * Closes the connection after a response to a body that nobody reads. `Connection: close` would make Node reset the
 * connection while the client still sends, and many clients then lose the response.
 */
export function leaveUnread(req: IncomingMessage, res: ServerResponse): void {
  if (isSmall(req)) return
  // Before the listener of Node, which starts to read.
  res.prependOnceListener('finish', () => {
    if (req.complete || req.readableFlowing) return
    const { socket } = req
    // Later than the ticks in which Node resumes the connection. `req.pause()` has no effect by then: Node discards the rest
    // of the body without backpressure.
    setImmediate(() => {
      socket.pause()
      socket.end()
    })
    const timer = setTimeout(() => socket.destroy(), LINGER).unref()
    socket.once('close', () => clearTimeout(timer))
  })
}
