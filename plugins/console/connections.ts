// Limits the connections of the console, so that idle or slow clients cannot lock out operators.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const connectionKey = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** Above the limit, a new connection closes the oldest one that serves no operator. This includes connections in the TLS handshake. */
export function limitConnections(server: Server, max: number) {
  const all = new Map<string, Socket>()
  const busy = new Set<string>()
  server.on('connection', (socket: Socket) => {
    const key = connectionKey(socket)
    all.set(key, socket)
    socket.once('close', () => all.delete(key))
    if (all.size <= max) return
    const oldest = [...all].find(([connection]) => !busy.has(connection))
    oldest?.[1].destroy()
  })
  return {
    /** Protects a connection until its response has ended. */
    keep({ socket }: IncomingMessage, res: ServerResponse) {
      const key = connectionKey(socket)
      busy.add(key)
      res.once('close', () => busy.delete(key))
    },
  }
}
