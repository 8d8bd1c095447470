// A port for what must know its own before it listens: a name with the port in it, or the same port at each start.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** One that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
