// Leaves a port to other processes: new connections are refused, and requests on open ones get `Connection: close`.
import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** How long a hand-over waits for open connections, milliseconds. */
const LONGEST = 10_000
const SWEEP_INTERVAL = 50

export interface Port {
  /** Stops listening. An open connection closes after its next response. */
  leave(): void
  /** Leaves, and resolves when all connections are closed, after 10 s at the latest. */
  handOver(): Promise<void>
  /** Leaves, and closes idle connections until the returned function is called. */
  sweep(): () => void
  /**
   * Resolves when no connection is open: at the latest `patience` milliseconds after the last response was sent, which is
   * waited for `sending` milliseconds at most.
   */
  whenEmpty(patience: number, sending: number): Promise<void>
  /** Destroys the remaining connections and resolves when the server is closed. */
  end(): Promise<void>
}

/** Resolves with `awaited`, at the latest after `patience` milliseconds. */
export async function within(patience: number, awaited: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, patience)
  })
  await Promise.race([awaited, late])
  clearTimeout(timer)
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
    handOver: () => within(LONGEST, leave()),
    sweep() {
      void leave()
      closeIdle()
      const sweeper = setInterval(closeIdle, SWEEP_INTERVAL)
      return () => clearInterval(sweeper)
    },
    async whenEmpty(patience, sending) {
      const end = performance.now() + sending
      while (isSending() && performance.now() < end) await pause(SWEEP_INTERVAL)
      await within(patience, leave())
    },
    async end() {
      const closed = new Promise(resolve => server.close(resolve))
      // Not `closeAllConnections`, which ignores connections whose TLS handshake is not done.
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}
