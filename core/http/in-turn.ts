// One request of a connection at a time: what is sent ahead (RFC 9112, "Pipelining") begins when the response before it is
// over. Node would begin them all, hold their answers, and never emit `close` on those that its client did not wait for.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { HEADER_COST, MAX_HELD_AHEAD, MAX_SENT_AHEAD } from './limits.ts'

type Exchange = readonly [IncomingMessage, ServerResponse]

interface Waiting {
  readonly exchange: Exchange
  /** Bytes that its headers hold. */
  readonly cost: number
}

/** What a connection is at. Kept on the socket: the usual request costs no look-up and no listener. */
const CURRENT = Symbol('the response that has the connection')
const AHEAD = Symbol('the requests that wait for it')

interface Line extends Socket {
  [CURRENT]?: ServerResponse
  [AHEAD]?: Waiting[]
}

const costOf = ({ rawHeaders }: IncomingMessage): number =>
  rawHeaders.reduce((cost, text) => cost + text.length, (rawHeaders.length / 2) * HEADER_COST)

/** What a byte of a body costs that comes in chunks of one: each is a Buffer. */
const CHUNK_COST = 64

/** Of its body, which is read from the connection until some kilobytes are there. */
const heldOf = ({ headers, readableLength }: IncomingMessage): number =>
  headers['transfer-encoding'] === undefined ? readableLength : readableLength * CHUNK_COST

const heldBy = (ahead: readonly Waiting[]): number =>
  ahead.reduce((bytes, { exchange: [req], cost }) => bytes + cost + heldOf(req), 0)

/**
 * `serve` for a server's `request` event, in turn. A connection that sends more than `MAX_SENT_AHEAD` ahead, or requests that
 * hold more than `MAX_HELD_AHEAD`, is closed, and `refused` is told; none of what waited has begun.
 */
export function serveInTurn(serve: RequestListener, refused: (socket: Socket) => void): RequestListener {
  function begin(line: Line, req: IncomingMessage, res: ServerResponse) {
    line[CURRENT] = res
    serve(req, res)
  }

  /** After what others do when the response closes. */
  const advanceAfter = (res: ServerResponse, line: Line, ahead: Waiting[]) =>
    void res.once('close', () => process.nextTick(advance, line, ahead))

  /** The next one's turn, where the connection goes on: only then has its response a socket. */
  function advance(line: Line, ahead: Waiting[]) {
    const next = ahead.shift()?.exchange
    if (!next?.[1].socket || next[1].destroyed) {
      ahead.length = 0
      return line.destroySoon()
    }
    if (ahead.length > 0) advanceAfter(next[1], line, ahead)
    begin(line, ...next)
  }

  function wait(line: Line, exchange: Exchange) {
    if (line.destroyed) return
    const current = line[CURRENT]
    line[AHEAD] ??= []
    const ahead = line[AHEAD]
    const cost = costOf(exchange[0])
    if (ahead.length === MAX_SENT_AHEAD || heldBy(ahead) + cost > MAX_HELD_AHEAD) {
      ahead.length = 0
      line.destroy()
      return refused(line)
    }
    const first = ahead.push({ exchange, cost }) === 1
    // Where the one before was the last of its connection, or none of ours, they are counted and never begin.
    if (first && current && !current.closed) advanceAfter(current, line, ahead)
  }

  return (req, res) => {
    if (res.socket) begin(req.socket, req, res)
    else wait(req.socket, [req, res])
  }
}

/**
 * The same for a handler that somebody else's server calls, which may have begun others on the connection: a request that was
 * sent ahead begins when its response gets the connection.
 */
export const inOwnTurn =
  (serve: (req: IncomingMessage, res: ServerResponse) => Promise<void>) =>
  async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    if (!res.socket) await new Promise<void>(resolve => res.once('socket', () => resolve()))
    return serve(req, res)
  }
