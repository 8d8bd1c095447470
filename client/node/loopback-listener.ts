// The sockets of a loopback redirect: bound to loopback addresses alone, on one port, for as long as a login takes.
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AuthError } from '../errors.ts'

export type LoopbackHost = 'localhost' | '127.0.0.1' | '::1'

export interface LoopbackListener {
  readonly port: number
  /** Whether it keeps the process alive. */
  keepProcess(keep: boolean): void
  /** Takes no more connections, lets the answers in `unfinished` reach the browser, and ends what is left. */
  close(unfinished: Iterable<Promise<void>>): Promise<void>
}

/** How often a free port is looked for that is free for IPv4 and IPv6. */
const PORT_ATTEMPTS = 10

/**
 * `port` 0: any free one. A browser may take `localhost` for either address, so both are bound where the machine has
 * both. Rejects with an AuthError for a port that cannot be had.
 */
export async function listenOnLoopback(
  host: LoopbackHost,
  port: number,
  handler: RequestListener,
): Promise<LoopbackListener> {
  for (let attempt = 1; ; attempt++) {
    const servers: Server[] = []
    try {
      const first = await bind(host === '::1' ? '::1' : '127.0.0.1', port, handler)
      servers.push(first)
      const bound = (first.address() as AddressInfo).port
      if (host === 'localhost') servers.push(...(await bindIfThere('::1', bound, handler)))
      return listenerOf(servers, bound)
    } catch (error) {
      await Promise.all(servers.map(closed))
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EADDRINUSE' && port === 0 && attempt < PORT_ATTEMPTS) continue
      throw explain(error, host, port)
    }
  }
}

function listenerOf(servers: readonly Server[], port: number): LoopbackListener {
  return {
    port,
    keepProcess(keep) {
      for (const server of servers) keep ? server.ref() : server.unref()
    },
    async close(unfinished) {
      const ended = Promise.all(servers.map(closed))
      await Promise.all(unfinished)
      for (const server of servers) server.closeAllConnections()
      await ended
    },
  }
}

async function bind(address: string, port: number, handler: RequestListener): Promise<Server> {
  const server = createServer(handler)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: address, port, exclusive: true }, resolve)
  })
  return server
}

async function bindIfThere(address: string, port: number, handler: RequestListener): Promise<Server[]> {
  try {
    return [await bind(address, port, handler)]
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT') return []
    throw error
  }
}

const closed = (server: Server) => new Promise<void>(resolve => server.close(() => resolve()))

function explain(cause: unknown, host: string, port: number): AuthError {
  const { code, message } = cause as NodeJS.ErrnoException
  const where = `port ${port} of ${host}`
  if (code === 'EADDRINUSE') {
    return new AuthError(`${where} is used by another program, so the login's answer cannot be received`, {
      code: 'temporarily_unavailable',
      retryable: true,
      cause,
      fix: 'end that program (or the other login), or choose another port and register that redirect URI',
    })
  }
  return new AuthError(`${where} cannot be listened on (${code ?? message})`, {
    code: 'invalid_options',
    cause,
    fix: 'choose a port from 1024 on, or 0 for any free one, and a loopback address that this machine has',
  })
}
