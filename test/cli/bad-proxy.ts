// A reverse proxy with typical configuration errors, for tests of `mcp-host doctor`.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface Faults {
  /** Response headers: a value to put in place, or null to leave out. */
  readonly headers?: Readonly<Record<string, string | null>>
  /** Request headers, likewise; the client's Host is passed on unless this says otherwise. */
  readonly sent?: Readonly<Record<string, string | null>>
  /** Paths that are not passed on but answered 404. */
  readonly without?: RegExp
  /** The path prefix that it removes. */
  readonly strips?: string
  /** Closes the connection of requests with this method. */
  readonly cuts?: string
  /** Keeps a body back until it is whole. */
  readonly buffers?: boolean
}

export interface BadProxy {
  readonly url: string
  /** Where requests go; set before the first. */
  target: string
  faults: Faults
}

const servers: Server[] = []

function change(headers: NodeJS.Dict<string | string[]>, changes: Faults['headers'] = {}) {
  const all: NodeJS.Dict<string | string[]> = { ...headers }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete all[name]
    else all[name] = value
  }
  return all
}

function pass(req: IncomingMessage, res: ServerResponse, { target, faults }: BadProxy) {
  if (faults.without?.test(req.url ?? '')) return void res.writeHead(404).end()
  if (faults.cuts === req.method) return void req.destroy()
  const headers = change(req.headers, faults.sent)
  const { strips = '' } = faults
  const path = req.url?.startsWith(`${strips}/`) ? req.url.slice(strips.length) : (req.url ?? '/')
  const upstream = request(new URL(path, target), { method: req.method, headers }, answer => {
    const chunks: Buffer[] = []
    const begin = () => res.writeHead(answer.statusCode ?? 502, change(answer.headers, faults.headers))
    if (!faults.buffers) begin().flushHeaders()
    answer.on('data', (chunk: Buffer) => (faults.buffers ? void chunks.push(chunk) : void res.write(chunk)))
    answer.on('end', () => {
      if (faults.buffers) begin().write(Buffer.concat(chunks))
      res.end()
    })
  })
  upstream.on('error', () => res.destroy())
  res.on('close', () => upstream.destroy())
  req.pipe(upstream)
}

/** Starts a proxy; with a certificate it speaks https, under the name localhost. */
export async function startBadProxy(certificate?: { key: Buffer; cert: Buffer }): Promise<BadProxy> {
  const server = certificate ? createTlsServer(certificate) : createServer()
  server.listen(0, certificate ? 'localhost' : '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  const { port } = server.address() as AddressInfo
  const url = certificate ? `https://localhost:${port}` : `http://127.0.0.1:${port}`
  const proxy: BadProxy = { url, target: '', faults: {} }
  server.on('request', (req, res) => pass(req, res, proxy))
  return proxy
}

/** For `after`. */
export async function stopProxies(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}
