// A server on its port: what is wrong with the port is said to the operator, and the address is one that clients can use.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StartError } from './errors.ts'
import type { ResolvedHttp } from './http-settings.ts'
import { isSecure } from './on-connection.ts'

/** Resolves once connections are accepted. Rejects with a StartError, for a busy port too. */
export function listenOn(server: Server, { host, port, backlog }: ResolvedHttp): Promise<void> {
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

/** `http://address:port`, or `https`; a server that listens everywhere is reached by loopback. */
export function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  const name =
    family === 'IPv6' ? `[${address === '::' ? '::1' : address}]` : address === '0.0.0.0' ? '127.0.0.1' : address
  return `${isSecure(server) ? 'https' : 'http'}://${name}:${port}`
}
