// A server on its port: what is wrong with the port is said to the operator, and the address is one that clients can use.
import type { Server } from 'node:http'
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net'
import { StartError } from './errors.ts'
import { PORT_CLOSES } from './hand-over.ts'
import type { ResolvedHttp } from './http-settings.ts'
import { isSecure } from './on-connection.ts'

type Address = Pick<ResolvedHttp, 'host' | 'port' | 'backlog'>

/** Resolves once the server accepts connections. Rejects with a StartError, also for a port that is in use. */
function listenAt(server: NetServer, { host, port, backlog }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'EADDRINUSE'
          ? `port ${port} of ${host} is in use; set http.port, or stop what listens there`
          : `cannot listen on ${host}:${port}: ${cause.message}`
      reject(new StartError(why, { cause }))
    })
    // In a worker Node has the primary listen, with the backlog that the first of them says.
    server.listen({ port, host, backlog }, resolve)
  })
}

/** A machine without IPv6. */
const hasNoAddress = ({ cause }: StartError) =>
  ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes((cause as NodeJS.ErrnoException).code ?? '')

/** Listens on `host`; `localhost` is both loopback addresses (RFC 6761 section 6.3). Rejects as `listenAt` does. */
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

/** `http://address:port`, or `https`; a server that listens everywhere is reached by loopback. */
export function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  const name =
    family === 'IPv6' ? `[${address === '::' ? '::1' : address}]` : address === '0.0.0.0' ? '127.0.0.1' : address
  return `${isSecure(server) ? 'https' : 'http'}://${name}:${port}`
}
