// Serves one request of a connection at a time. Clients that pipeline (RFC 9112 section 9.3.2) retry on a new connection.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { MAX_PIPELINED } from './limits.ts'

type Serve<Result> = (req: IncomingMessage, res: ServerResponse) => Result

/**
 * Refuses requests that arrive before the previous response has ended: the connection closes after that response. More than
 * `MAX_PIPELINED` of them close the connection at once. Node would start them all, and emit no `close` for those whose client
 * disconnects before their turn.
 */
export function refusePipelined<Result>(
  serve: Serve<Result>,
  refused: (socket: Socket) => void,
): Serve<Result | undefined> {
  const counts = new WeakMap<Socket, number>()

  function refuse(req: IncomingMessage, res: ServerResponse) {
    const { socket } = req
    const count = (counts.get(socket) ?? 0) + 1
    counts.set(socket, count)
    if (count > MAX_PIPELINED) return void socket.destroy()
    req.resume()
    res.writeHead(503, { 'Content-Length': 0, 'Retry-After': 0, Connection: 'close' }).end()
    if (count === 1) refused(socket)
  }

  // Node assigns the connection to a response when it is the first of the queue.
  return (req, res) => (res.socket ? serve(req, res) : (refuse(req, res) as undefined))
}
