// The port of a server: listening, and leaving the port to other processes.

import type { Server } from 'node:http'
import { type AddressInfo, createServer, Server as NetServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from './clock.ts'
import { isSecure } from './create-server.ts'
import { StartError } from './errors.ts'
import type { ResolvedHttp } from './http-settings.ts'

/** How long a hand-over waits for open connections, milliseconds. */
const LONGEST = 10_000
const SWEEP_INTERVAL = 50

export interface Port {
  /** Stops listening. An open connection closes after its next response. */
  leave(): void
  /** Leaves, and resolves when all connections are closed, after 10 s at most. */
  handOver(): Promise<void>
  /** Leaves, and closes idle connections until the returned function is called. */
  sweep(): () => void
  /**
   * Resolves when all connections are closed, at most `patience` milliseconds after the last response, which can take `sending`
   * milliseconds.
   */
  whenEmpty(patience: number, sending: number): Promise<void>
  /** Destroys the remaining connections and resolves when the server is closed. */
  end(): Promise<void>
}

/** Emitted by a server before it stops listening. */
export const PORT_CLOSES = 'portCloses'

export function createPort(server: Server): Port {
  const open = new Set<Socket>()
  const add = (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }
  // With HTTPS: the TCP connection, and the TLS connection that carries the requests.
  server.on('connection', add).on('secureConnection', add)
  let empty: Promise<void> | undefined

  function leave() {
    empty ??= new Promise<void>(resolve => {
      if (!server.listening) return resolve()
      server.emit(PORT_CLOSES)
      server.prependListener('request', (_request, response) => void response.setHeader('Connection', 'close'))
      // `close` of an HTTP server also closes idle connections, on which a request can be under way.
      NetServer.prototype.close.call(server, () => resolve())
    })
    return empty
  }

  const isSending = () => [...open].some(socket => socket.writableLength > 0)
  // Node counts a connection as idle once its response has ended, even if the response is not sent yet.
  const closeIdle = () => {
    if (!isSending()) server.closeIdleConnections()
  }

  return {
    leave: () => void leave(),
    handOver: () => withTimeout(leave(), LONGEST, () => undefined),
    sweep() {
      void leave()
      closeIdle()
      const sweeper = setInterval(closeIdle, SWEEP_INTERVAL)
      return () => clearInterval(sweeper)
    },
    async whenEmpty(patience, sending) {
      const end = performance.now() + sending
      while (isSending() && performance.now() < end) await pause(SWEEP_INTERVAL)
      await withTimeout(leave(), patience, () => undefined)
    },
    async end() {
      const closed = new Promise(resolve => server.close(resolve))
      // Not `closeAllConnections`, which ignores connections whose TLS handshake is not done.
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}

type Address = Pick<ResolvedHttp, 'host' | 'port' | 'backlog'>

/** Rejects with a StartError, for example if the port is in use. */
function listenAt(server: NetServer, { host, port, backlog }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'EADDRINUSE'
          ? `port ${port} of ${host} is in use; set http.port, or stop what listens there`
          : `cannot listen on ${host}:${port}: ${cause.message}`
      reject(new StartError(why, { cause }))
    })
    // With workers, the primary uses the backlog of the first worker.
    server.listen({ port, host, backlog }, resolve)
  })
}

/** A machine without IPv6. */
const hasNoAddress = ({ cause }: StartError) =>
  ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes((cause as NodeJS.ErrnoException).code ?? '')

/** Listens on `host`. `localhost` means both loopback addresses (RFC 6761 section 6.3). Rejects like `listenAt`. */
export async function listenOn(server: Server, { host, port, backlog }: Address): Promise<void> {
  if (host !== 'localhost') return listenAt(server, { host, port, backlog })
  await listenAt(server, { host: '127.0.0.1', port, backlog })
  const { port: open } = server.address() as AddressInfo
  const second = createServer({ noDelay: true, allowHalfOpen: !isSecure(server) }, socket =>
    server.emit('connection', socket),
  )
  second.unref()
  try {
    await listenAt(second, { host: '::1', port: open, backlog })
    server.once(PORT_CLOSES, () => second.close())
  } catch (error) {
    if (error instanceof StartError && hasNoAddress(error)) return
    server.close()
    throw error
  }
}

/** The URL of the server. A server on all interfaces is addressed by its loopback address. */
export function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  const name =
    family === 'IPv6' ? `[${address === '::' ? '::1' : address}]` : address === '0.0.0.0' ? '127.0.0.1' : address
  return `${isSecure(server) ? 'https' : 'http'}://${name}:${port}`
}
