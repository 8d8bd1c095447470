// The connections that Node's fetch keeps open.
import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

const open = new Map<Socket, number | undefined>()

channel('undici:client:connected').subscribe(message => {
  const { socket } = message as { readonly socket: Socket }
  open.set(socket, socket.remotePort)
  socket.once('close', () => open.delete(socket))
})

/** Waits until fetch has seen that a stopped server closed its connections: a request on one of them would fail. */
export async function connectionsClosed(port: number): Promise<void> {
  const left = [...open].filter(([, remotePort]) => remotePort === port)
  await Promise.all(left.map(([socket]) => new Promise(resolve => socket.once('close', resolve))))
}
