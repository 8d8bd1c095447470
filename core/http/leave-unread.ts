// An answer to a request whose body nobody reads, such as a refusal: it costs its header, not its body. Node would read all
// of it to find the next request, or reset a connection that closes, and with a reset many clients lose the answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Bytes up to which a body is read all the same, and its connection kept. */
const SMALL_BODY = 64 * 1024
/** How long a client that still sends has to see its answer, and that the connection ends, milliseconds. */
const LINGER = 2_000

/** What Node keeps, not documented and the same since 0.12: how it reads what nobody did, and that a connection ends. */
interface Unread extends IncomingMessage {
  _dump(): void
}
interface Last extends ServerResponse {
  readonly _last: boolean
}

/** True where more than a little is still to come, as far as its header tells. */
export const isUnread = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > SMALL_BODY)

/** True where nobody has begun to read the body. */
export const isUntouched = (req: IncomingMessage): boolean =>
  req.readableFlowing === null && req.listenerCount('readable') === 0

/** Says that nothing more will come, reads nothing more, and closes the connection a little later. */
function linger(socket: Socket) {
  socket.pause()
  socket.end()
  const timer = setTimeout(() => socket.destroy(), LINGER).unref()
  socket.once('close', () => clearTimeout(timer))
}

/** Before the head is written: a connection that ends with this response ends so that its client gets the answer. */
export function leaveUnread(res: ServerResponse): void {
  // Before Node's own listener.
  res.prependOnceListener('finish', () => {
    const { socket } = res
    const req = res.req as Unread
    if (req.complete || !socket || !(res as Last)._last) return
    req._dump = () => undefined
    socket.destroySoon = () => linger(socket)
  })
}
