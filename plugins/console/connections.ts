// Limits the connections of the console, so that idle or slow clients keep no operator out.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const keyOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** A further connection closes the oldest one without a request of an operator. With TLS, also before the handshake. */
export function limitConnections(server: Server, most: number) {
  const all = new Map<string, Socket>()
  const busy = new Set<string>()
  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket)
    all.set(key, socket)
    socket.once('close', () => all.delete(key))
    if (all.size <= most) return
    const oldest = [...all].find(([one]) => !busy.has(one))
    oldest?.[1].destroy()
  })
  return {
    /** The connection stays open until the response has ended. */
    keep({ socket }: IncomingMessage, res: ServerResponse) {
      const key = keyOf(socket)
      busy.add(key)
      res.once('close', () => busy.delete(key))
    },
  }
}
