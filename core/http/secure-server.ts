// HTTPS: Node's server with a bound for handshakes, and an account of those that fail. Loaded where `http.tls` is given.
import { constants } from 'node:crypto'
import { createServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Certificate } from './certificate.ts'
import type { HttpServerFactory } from './create-server.ts'

/** Of one reason, a line at most so often, milliseconds. */
const LINE_INTERVAL = 10_000

export type HandshakeFault =
  | 'timeout'
  | 'plain_http'
  | 'client_certificate'
  | 'refused_by_client'
  | 'version'
  | 'gone'
  | 'other'

/** What an operator is told of handshakes that fail. */
export interface HandshakeNews {
  failed(reason: HandshakeFault): void
  /** Once in a while: how many failed for that reason since the last time. */
  tell(line: {
    readonly reason: HandshakeFault
    readonly handshakes: number
    readonly code: string
    readonly ip?: string
  }): void
}

export interface SecureSettings {
  readonly certificate: Certificate
  /** Milliseconds. */
  readonly handshakeTimeout: number
  readonly news: HandshakeNews
}

export type SecureServer = ReturnType<typeof createServer>

const PATTERNS: ReadonlyArray<readonly [RegExp, HandshakeFault]> = [
  [/^ERR_TLS_HANDSHAKE_TIMEOUT$/, 'timeout'],
  [/HTTP_REQUEST$/, 'plain_http'],
  [/NOT_RETURN_A_CERTIFICATE$/, 'client_certificate'],
  [/_ALERT_(?:.*CERTIFICATE|UNKNOWN_CA)/, 'refused_by_client'],
  [/PROTOCOL|VERSION/, 'version'],
  [/^(?:ECONNRESET|EPIPE)$/, 'gone'],
]

function faultOf(code: string, { authorizationError }: TLSSocket): HandshakeFault {
  // Node says of a client whose certificate it does not take that the connection was reset.
  if (authorizationError) return 'client_certificate'
  return PATTERNS.find(([pattern]) => pattern.test(code))?.[1] ?? 'other'
}

/** Counts each, and tells of them now and then: whoever knocks often must not fill the log. */
function tellFaults(server: SecureServer, news: HandshakeNews): void {
  const kinds = new Map<HandshakeFault, { at: number; handshakes: number }>()
  server.on('tlsClientError', ({ code = '' }: NodeJS.ErrnoException, socket: TLSSocket) => {
    const reason = faultOf(code, socket)
    news.failed(reason)
    const kind = kinds.get(reason) ?? { at: -Infinity, handshakes: 0 }
    kinds.set(reason, kind)
    kind.handshakes++
    const now = performance.now()
    if (now - kind.at < LINE_INTERVAL) return
    const { remoteAddress: ip } = socket
    news.tell({ reason, handshakes: kind.handshakes, code, ...(ip !== undefined && { ip }) })
    Object.assign(kind, { at: now, handshakes: 0 })
  })
}

/** In the place of node:http's `createServer`. */
export const secureServer =
  ({ certificate, handshakeTimeout, news }: SecureSettings): HttpServerFactory<SecureServer> =>
  (options, serve) => {
    const asksClients = certificate.context.ca !== undefined
    const secure = { ...contextOf(certificate), handshakeTimeout: Math.max(1, handshakeTimeout) }
    const server = createServer(
      { ...options, ...secure, requestCert: asksClients, rejectUnauthorized: asksClients },
      serve,
    )
    tellFaults(server, news)
    return endingHandshakes(server)
  }

/**
 * Where clients show certificates no session is resumed, by a ticket or by its id: whoever resumes shows none, so one that has
 * ended would be let in, and, since Node gives new workers the ticket keys of the first one, so would one whose authority is gone.
 */
const NO_RESUMING = { secureOptions: constants.SSL_OP_NO_TICKET }

/** As Node takes it. */
export const contextOf = ({ context }: Certificate) => {
  const { passphrase, ca, ...rest } = context
  return {
    ...rest,
    ...(passphrase !== undefined && { passphrase }),
    ...(ca !== undefined && { ca, ...NO_RESUMING }),
  }
}

/** Node's `closeAllConnections` knows those alone whose handshake is done; `close` would wait for the others. */
function endingHandshakes(server: SecureServer): SecureServer {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const closeAll = server.closeAllConnections
  server.closeAllConnections = () => {
    closeAll.call(server)
    for (const socket of open) socket.destroy()
  }
  return server
}
