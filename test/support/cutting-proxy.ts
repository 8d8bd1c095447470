// A TCP proxy that destroys sockets: between a client and the host it is the network that fails.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Told of what the host sent on a connection: how many of these bytes pass before it is cut; undefined: all of them. */
export type Cutter = (bytes: Buffer) => number | undefined

export interface CuttingProxy {
  /** Where clients connect, without a trailing slash. */
  readonly url: string
  /** Connections that were cut. */
  readonly cuts: number
  /** Destroys both sockets of every connection there is. */
  cutAll(): void
  stop(): Promise<void>
}

export interface CuttingProxySettings {
  /** Decides about one connection, whose first bytes from the client are given. Default: only `cutAll` cuts. */
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
    // By turns as if the other process ended, and as if the line did: then what is on its way is lost as well.
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
    // An end is passed on; whatever else happens to one socket happens to both.
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
