// A TCP server that answers each connection with the same bytes and leaves it open, for responses that node:http cannot send.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface RawServer {
  /** `http://127.0.0.1:<port>/` */
  readonly url: string
  /** Resolves when the client has closed all connections; there must have been one. */
  closed(): Promise<void>
  stop(): Promise<void>
}

export async function startRawServer(answer: string): Promise<RawServer> {
  const sockets: Socket[] = []
  const server = createServer(socket => {
    sockets.push(socket)
    // A reset counts as an end.
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write(answer, 'latin1'))
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async closed() {
      if (sockets.length === 0) throw new Error('there was no connection')
      await Promise.all(sockets.map(socket => socket.closed || once(socket, 'close')))
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
