// An HTTP proxy on loopback that tunnels (CONNECT) and records requests.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

export interface TestProxy {
  readonly url: string
  /** The hosts that it was asked to connect to. */
  readonly asked: string[]
  /** What was shown to it as Proxy-Authorization. */
  readonly credentials: (string | undefined)[]
  close(): Promise<void>
}

export async function startProxy(): Promise<TestProxy> {
  const asked: string[] = []
  const credentials: (string | undefined)[] = []
  const sockets = new Set<Socket>()
  const server = createServer((_, response) => void response.writeHead(501).end('tunnels only'))
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('connect', (request, socket, head) => {
    asked.push(request.url ?? '')
    credentials.push(request.headers['proxy-authorization'])
    const [host = '', port = ''] = (request.url ?? '').split(':')
    // Names of examples are this machine.
    const target = connect(Number(port), host.endsWith('.example') ? '127.0.0.1' : host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      target.write(head)
      target.pipe(socket).pipe(target)
    })
    for (const end of [target, socket]) end.on('error', () => target.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    credentials,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
