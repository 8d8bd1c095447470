// The server of the metrics port. It responds while the host drains, and limits unauthenticated connections.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { addressKey, isLoopback } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { createHttpServer, type ServerEvents } from '../../core/transport.ts'
import { authorityOf, listenOn } from '../families/own-port/index.ts'
import type { Exposition } from './exposition.ts'

const OWN_PATH = '/metrics'

/** Maximum connections. */
export const MOST_CONNECTIONS = 64
/** Maximum unauthenticated connections per address. */
export const MOST_OF_ADDRESS = 8
/** Milliseconds. */
const TIME_LIMITS = { requestTimeout: 5_000, keepAliveTimeout: 5_000, writeTimeout: 10_000 }

interface OwnPort {
  readonly at: InternalHost['config']['at']
  readonly port: number
  readonly host: string
  /** Undefined: no authentication. */
  readonly mayRead: ((headers: IncomingMessage['headers']) => boolean) | undefined
  scrape(req: IncomingMessage): Promise<Exposition>
  readonly events: ServerEvents
  failed(error: unknown): void
}

function refusalOf({ method = '', url = '', headers }: IncomingMessage, { mayRead }: OwnPort) {
  const host = headers.host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') ?? ''
  // Prevents DNS rebinding.
  if (!mayRead && !isLoopback(host)) {
    return { status: 403, text: 'use 127.0.0.1 or localhost, or set `token`' }
  }
  if (mayRead && !mayRead(headers)) {
    return {
      status: 401,
      text: 'the metrics need Authorization: Bearer <token>',
      headers: { 'WWW-Authenticate': 'Bearer' },
    }
  }
  if (url.split('?', 1)[0] !== OWN_PATH) return { status: 404, text: `the metrics are at ${OWN_PATH}` }
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: method, headers: { Allow: 'GET, HEAD' } }
  return undefined
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

async function answer(req: IncomingMessage, res: ServerResponse, own: OwnPort, places: Places) {
  const send = (status: number, type: string, body: Buffer, headers = {}) => {
    // Node would read the whole body to find the next request.
    const ending = hasBody(req) ? { Connection: 'close' } : {}
    const facts = { 'Content-Type': type, 'Content-Length': body.length, 'Cache-Control': 'no-store' }
    res.writeHead(status, { ...facts, ...ending, ...headers })
    res.end(req.method === 'HEAD' ? undefined : body)
  }
  const say = (status: number, text: string, headers = {}) =>
    send(status, 'text/plain; charset=utf-8', Buffer.from(`${text}\n`), headers)
  const refusal = refusalOf(req, own)
  // Without this, a refused keep-alive connection would keep its slot.
  if (refusal) return say(refusal.status, refusal.text, { ...refusal.headers, Connection: 'close' })
  places.keep(req.socket)
  try {
    const { type, body } = await own.scrape(req)
    send(200, type, body)
  } catch (error) {
    own.failed(error)
    say(500, 'the metrics could not be read; see the log')
  }
}

/** Resolves once the server listens; rejects with a StartError. Does not keep the process alive. */
export async function openOwnPort(own: OwnPort): Promise<{ readonly server: Server; readonly url: string }> {
  const serve = (req: IncomingMessage, res: ServerResponse) => void answer(req, res, own, places)
  const { server } = createHttpServer(serve, TIME_LIMITS, own.events)
  // Without a token, only local callers connect.
  const perAddress = own.mayRead ? MOST_OF_ADDRESS : MOST_CONNECTIONS
  const places = limitPlaces(server, MOST_CONNECTIONS, perAddress)
  const { address, port } = await listenOn(server, own.at, { ...own, code: 'MH1301' }, own.failed)
  return { server, url: `http://${authorityOf(address, port)}${OWN_PATH}` }
}

const NETWORK = 64

interface Places {
  /** Marks an authenticated connection, which keeps its slot. */
  keep(socket: Socket): void
}

/** A new connection closes the oldest unauthenticated one, so that callers without a token cannot block a scraper. */
function limitPlaces(server: Server, all: number, perAddress: number): Places {
  const newcomers = new Map<Socket, string>()
  const readers = new Set<Socket>()

  server.on('connection', socket => {
    // The client has disconnected.
    const { remoteAddress } = socket
    if (remoteAddress === undefined) return
    const caller = addressKey(remoteAddress, NETWORK)
    const ofCaller = [...newcomers.keys()].filter(other => newcomers.get(other) === caller)
    const isFull = newcomers.size + readers.size >= all
    const oldest = ofCaller.length >= perAddress ? ofCaller[0] : isFull ? newcomers.keys().next().value : undefined
    if (isFull && !oldest) return void socket.destroy()
    if (oldest) {
      newcomers.delete(oldest)
      oldest.destroy()
    }
    newcomers.set(socket, caller)
    socket.once('close', () => {
      newcomers.delete(socket)
      readers.delete(socket)
    })
  })

  return {
    keep(socket) {
      if (newcomers.delete(socket)) readers.add(socket)
    },
  }
}
