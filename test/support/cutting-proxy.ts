// A TCP proxy that destroys sockets, to simulate network failures between client and host.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Receives the bytes that the host sent on a connection. Returns how many of them pass before the cut; undefined: all. */
export type Cutter = (bytes: Buffer) => number | undefined

export interface CuttingProxy {
  /** The URL for clients, without a trailing slash. */
  readonly url: string
  /** Number of cut connections. */
  readonly cuts: number
  /** Destroys both sockets of every open connection. */
  cutAll(): void
  stop(): Promise<void>
}

export interface CuttingProxySettings {
  /** Decides on one connection by the first bytes of the client. Default: only `cutAll` cuts. */
  readonly cutter?: (request: string) => Cutter
}

export async function startCuttingProxy(target: string, { cutter }: CuttingProxySettings = {}): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target)
  const connections = new Set<() => void>()
  let cuts = 0

  function join(client: Socket) {
    const host = connect({ host: hostname, port: Number(port) })
    let decide: Cutter | undefined
    function close() {
      connections.delete(cut)
      client.destroy()
      host.destroy()
    }
    // Alternates between RST and FIN. A reset also loses data in flight.
    function cut() {
      if (cuts++ % 2 === 0) client.resetAndDestroy()
      close()
    }
    connections.add(cut)
    client.on('data', bytes => {
      decide ??= cutter?.(bytes.toString('latin1'))
      host.write(bytes)
    })
    host.on('data', bytes => {
      const passing = decide?.(bytes)
      if (passing === undefined) {
        if (!client.write(bytes)) host.pause()
      } else client.write(bytes.subarray(0, passing), cut)
    })
    client.on('drain', () => host.resume())
    // FIN is passed on. Any other event of one socket destroys both.
    client.once('end', () => host.end()).on('error', close)
    host.once('end', () => client.end()).on('error', close)
    client.once('close', close)
    host.once('close', () => client.end())
  }

  const server = createServer({ allowHalfOpen: true }, join).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts
    },
    cutAll() {
      for (const cut of [...connections]) cut()
    },
    async stop() {
      server.close()
      for (const close of [...connections]) close()
      await once(server, 'close')
    },
  }
}
