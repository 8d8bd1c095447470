// A simple TCP load balancer: each connection goes to the next node, skipping nodes that refuse it.
// Once a node accepted a connection, nothing is sent a second time.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TcpBalancer {
  /** Without a trailing slash. */
  readonly url: string
  /** Number of refused connections. */
  readonly passedOver: number
  stop(): Promise<void>
}

/** Connects to the first of these ports that accepts. Rejects if none does. */
async function connectToAny(ports: readonly number[], refused: () => void): Promise<Socket> {
  for (const port of ports) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    try {
      await once(socket, 'connect')
      return socket
    } catch {
      refused()
    }
  }
  throw new Error('no node takes connections')
}

export async function startTcpBalancer(ports: readonly number[]): Promise<TcpBalancer> {
  const sockets = new Set<Socket>()
  let next = 0
  let passedOver = 0

  async function carry(client: Socket) {
    sockets.add(client)
    client.once('close', () => sockets.delete(client))
    // For errors before a node is connected.
    client.on('error', () => client.destroy())
    const first = next++ % ports.length
    const order = [...ports.slice(first), ...ports.slice(0, first)]
    try {
      const node = await connectToAny(order, () => passedOver++)
      node.on('error', () => client.destroy()).on('close', () => client.destroySoon())
      client.on('close', () => node.destroy())
      client.pipe(node)
      node.pipe(client)
    } catch {
      client.destroy()
    }
  }

  const server = createServer({ allowHalfOpen: true }, client => void carry(client)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get passedOver() {
      return passedOver
    },
    async stop() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
