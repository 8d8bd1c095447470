// Connections of a server that can carry requests: of HTTPS, those whose handshake is done. What Node calls a connection there
// is the one below, of which nobody reads or writes.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Whether it speaks TLS, asked without loading it. */
export const isSecure = (server: object): boolean => 'setSecureContext' in server

/** Calls `listener` with each, once requests may come on it. */
export function onConnection(server: Server, listener: (socket: Socket) => void): void {
  server.on(isSecure(server) ? 'secureConnection' : 'connection', listener)
}
