// Listens on the port of a server, and hands it over to other processes.

import type { Server } from 'node:http'
import { type AddressInfo, createServer, Server as NetServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from './clock.ts'
import { isSecure } from './create-server.ts'
import { StartError } from './errors.ts'
import type { ResolvedHttp } from './guard.ts'

const HAND_OVER_TIMEOUT = 10_000
const SWEEP_INTERVAL = 50

const PORT_CLOSES = 'portCloses'

export function createPort(server: Server) {
  const open = new Set<Socket>()
  const add = (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }
  // With HTTPS, a connection consists of a TCP connection and the TLS connection on top.
  server.on('connection', add).on('secureConnection', add)
  let closed: Promise<void> | undefined

  function stopListening() {
    closed ??= new Promise<void>(resolve => {
      if (!server.listening) return resolve()
      server.prependListener('request', (_request, response) => void response.setHeader('Connection', 'close'))
      const close = () => {
        server.emit(PORT_CLOSES)
        // `close` of an HTTP server also closes idle connections, which can have a request in transit.
        NetServer.prototype.close.call(server, () => resolve())
      }
      // The event loop first accepts the connections that wait, because closing the port resets them.
      setImmediate(() => setImmediate(close))
    })
    return closed
  }

  const isSending = () => [...open].some(socket => socket.writableLength > 0)
  // Node counts a connection as idle before its last response is completely sent.
  const closeIdle = () => {
    if (!isSending()) server.closeIdleConnections()
  }

  return {
    /**
     * Stops listening; open connections close after their next response. Resolves when all connections are closed, after
     * 10 s at most.
     */
    handOver: () => withTimeout(stopListening(), HAND_OVER_TIMEOUT, () => undefined),
    /** Hands the port over like `handOver`, and closes idle connections until the returned function is called. */
    sweep() {
      void stopListening()
      closeIdle()
      const sweeper = setInterval(closeIdle, SWEEP_INTERVAL)
      return () => clearInterval(sweeper)
    },
    /** Resolves when all connections are closed, at most `timeout` ms after the last response, which can take `sending` ms. */
    async whenEmpty(timeout: number, sending: number) {
      const end = performance.now() + sending
      while (isSending() && performance.now() < end) await pause(SWEEP_INTERVAL)
      await withTimeout(stopListening(), timeout, () => undefined)
    },
    async end() {
      const closed = new Promise(resolve => server.close(resolve))
      // `closeAllConnections` ignores connections with an unfinished TLS handshake.
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}

const LISTEN_FIXES: Readonly<Record<string, string>> = {
  EACCES: '; use a port of at least 1024, or grant the process CAP_NET_BIND_SERVICE',
  EADDRNOTAVAIL: '; this machine does not have the address: use 0.0.0.0, or one of its addresses',
}

/** Explains why a server cannot listen. `fix`: how to select another port. */
export function explainListen({ code = '', message }: NodeJS.ErrnoException, host: string, port: number, fix: string) {
  if (code === 'EADDRINUSE') return `port ${port} of ${host} is in use; ${fix}, or stop the program that uses it`
  return `cannot listen on ${host}:${port}: ${message}${LISTEN_FIXES[code] ?? ''}`
}

type Address = Pick<ResolvedHttp, 'host' | 'port' | 'backlog'>

function listenAt(server: NetServer, { host, port, backlog }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(new StartError('MH1301', explainListen(cause, host, port, 'set http.port or --port'), { cause })),
    )
    // With workers, the primary uses the backlog of the first worker.
    server.listen({ port, host, backlog }, resolve)
  })
}

const hasCode = (error: unknown, codes: readonly string[]) =>
  error instanceof StartError && codes.includes((error.cause as NodeJS.ErrnoException).code ?? '')

/** Number of ports to try with port 0: a port that is free at one loopback address can be in use at the other. */
const MAX_PORTS = 10

/** Listens on `host`. `localhost` means both loopback addresses (RFC 6761 section 6.3). */
export async function listenOn(server: Server, { host, port, backlog }: Address): Promise<void> {
  if (host !== 'localhost') return listenAt(server, { host, port, backlog })
  for (let triesLeft = MAX_PORTS; ; triesLeft--) {
    const ipv6 = createServer({ noDelay: true, allowHalfOpen: !isSecure(server) }, socket =>
      server.emit('connection', socket),
    )
    ipv6.unref()
    try {
      await listenAt(ipv6, { host: '::1', port, backlog })
    } catch (error) {
      if (!hasCode(error, ['EADDRNOTAVAIL', 'EAFNOSUPPORT'])) throw error
      return listenAt(server, { host: '127.0.0.1', port, backlog })
    }
    try {
      await listenAt(server, { host: '127.0.0.1', port: (ipv6.address() as AddressInfo).port, backlog })
      server.once(PORT_CLOSES, () => ipv6.close())
      return
    } catch (error) {
      ipv6.close()
      if (port !== 0 || triesLeft === 1 || !hasCode(error, ['EADDRINUSE'])) throw error
    }
  }
}

export function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  const name =
    family === 'IPv6' ? `[${address === '::' ? '::1' : address}]` : address === '0.0.0.0' ? '127.0.0.1' : address
  return `${isSecure(server) ? 'https' : 'http'}://${name}:${port}`
}
