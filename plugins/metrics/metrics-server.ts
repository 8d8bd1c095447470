// The server of the metrics port. It responds while the host drains, and limits unauthenticated connections.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { addressKey, isLoopback } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { createHttpServer, type ServerEvents } from '../../core/transport.ts'
import { formatAuthority, startListening } from '../families/separate-port/index.ts'
import type { Exposition } from './exposition.ts'

const METRICS_PATH = '/metrics'

export const MAX_CONNECTIONS = 64
export const MAX_PER_ADDRESS = 8
/** Milliseconds. */
const TIMEOUTS = { requestTimeout: 5_000, keepAliveTimeout: 5_000, writeTimeout: 10_000 }

interface ServerSettings {
  readonly at: InternalHost['config']['at']
  readonly port: number
  readonly host: string
  /** Undefined: no authentication. */
  readonly isAuthorized: ((headers: IncomingMessage['headers']) => boolean) | undefined
  scrape(req: IncomingMessage): Promise<Exposition>
  readonly events: ServerEvents
  onError(error: unknown): void
}

function findRefusal({ method = '', url = '', headers }: IncomingMessage, { isAuthorized }: ServerSettings) {
  const host = headers.host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') ?? ''
  // Prevents DNS rebinding.
  if (!isAuthorized && !isLoopback(host)) {
    return { status: 403, text: 'use 127.0.0.1 or localhost, or set `token`' }
  }
  if (isAuthorized && !isAuthorized(headers)) {
    return {
      status: 401,
      text: 'the metrics need Authorization: Bearer <token>',
      headers: { 'WWW-Authenticate': 'Bearer' },
    }
  }
  if (url.split('?', 1)[0] !== METRICS_PATH) return { status: 404, text: `the metrics are at ${METRICS_PATH}` }
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: method, headers: { Allow: 'GET, HEAD' } }
  return undefined
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

async function respond(req: IncomingMessage, res: ServerResponse, settings: ServerSettings, slots: ConnectionSlots) {
  const send = (status: number, type: string, body: Buffer, headers = {}) => {
    // Node would read the whole body to find the next request.
    const connectionHeader = hasBody(req) ? { Connection: 'close' } : {}
    const baseHeaders = { 'Content-Type': type, 'Content-Length': body.length, 'Cache-Control': 'no-store' }
    res.writeHead(status, { ...baseHeaders, ...connectionHeader, ...headers })
    res.end(req.method === 'HEAD' ? undefined : body)
  }
  const sendText = (status: number, text: string, headers = {}) =>
    send(status, 'text/plain; charset=utf-8', Buffer.from(`${text}\n`), headers)
  const refusal = findRefusal(req, settings)
  // Without this, a refused keep-alive connection would keep its slot.
  if (refusal) return sendText(refusal.status, refusal.text, { ...refusal.headers, Connection: 'close' })
  slots.reserve(req.socket)
  try {
    const { type, body } = await settings.scrape(req)
    send(200, type, body)
  } catch (error) {
    settings.onError(error)
    sendText(500, 'the metrics could not be read; see the log')
  }
}

/** Resolves once the server listens; rejects with a StartError. Does not keep the process alive. */
export async function startServer(
  settings: ServerSettings,
): Promise<{ readonly server: Server; readonly url: string }> {
  const serve = (req: IncomingMessage, res: ServerResponse) => void respond(req, res, settings, slots)
  const { server } = createHttpServer(serve, TIMEOUTS, settings.events)
  // Without a token, only local callers connect.
  const perAddress = settings.isAuthorized ? MAX_PER_ADDRESS : MAX_CONNECTIONS
  const slots = limitConnections(server, MAX_CONNECTIONS, perAddress)
  const { address, port } = await startListening(server, settings.at, { ...settings, code: 'MH1301' }, settings.onError)
  return { server, url: `http://${formatAuthority(address, port)}${METRICS_PATH}` }
}

const IPV6_PREFIX = 64

interface ConnectionSlots {
  /** Marks an authenticated connection, which keeps its slot. */
  reserve(socket: Socket): void
}

/** A new connection closes the oldest unauthenticated one, so that callers without a token cannot block a scraper. */
function limitConnections(server: Server, maxConnections: number, perAddress: number): ConnectionSlots {
  const untrusted = new Map<Socket, string>()
  const trusted = new Set<Socket>()

  server.on('connection', socket => {
    // The client has disconnected.
    const { remoteAddress } = socket
    if (remoteAddress === undefined) return
    const caller = addressKey(remoteAddress, IPV6_PREFIX)
    const ofCaller = [...untrusted.keys()].filter(other => untrusted.get(other) === caller)
    const isFull = untrusted.size + trusted.size >= maxConnections
    const oldest = ofCaller.length >= perAddress ? ofCaller[0] : isFull ? untrusted.keys().next().value : undefined
    if (isFull && !oldest) return void socket.destroy()
    if (oldest) {
      untrusted.delete(oldest)
      oldest.destroy()
    }
    untrusted.set(socket, caller)
    socket.once('close', () => {
      untrusted.delete(socket)
      trusted.delete(socket)
    })
  })

  return {
    reserve(socket) {
      if (untrusted.delete(socket)) trusted.add(socket)
    },
  }
}
