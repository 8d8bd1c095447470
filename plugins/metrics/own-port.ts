// A server for the metrics alone, on a port of their own: away from the clients, and answering while the host drains.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isLoopback } from '../../core/auth.ts'
import { type PluginHost, StartError } from '../../core/index.ts'
import type { Exposition } from './exposition.ts'

export const OWN_PATH = '/metrics'

export interface OwnPort {
  /** The keys that lead to the plugin's options. */
  readonly at: PluginHost['at']
  readonly port: number
  readonly host: string
  /** Undefined: whoever reaches it may read. */
  readonly mayRead: ((headers: IncomingMessage['headers']) => boolean) | undefined
  scrape(req: IncomingMessage): Promise<Exposition>
  failed(error: unknown): void
}

/** The name in a Host header, without its port. */
const nameIn = (host: string) => host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')

/** Who is refused, and why; undefined: nobody. */
function refusalOf({ method = '', url = '', headers }: IncomingMessage, { mayRead }: OwnPort) {
  // A page of a foreign name that leads here (DNS rebinding) must not read what only this machine may.
  if (!mayRead && !isLoopback(nameIn(headers.host ?? ''))) {
    return { status: 403, text: 'ask for it by 127.0.0.1 or localhost, or set `token`' }
  }
  if (mayRead && !mayRead(headers)) {
    return {
      status: 401,
      text: 'the metrics need Authorization: Bearer <token>',
      headers: { 'WWW-Authenticate': 'Bearer' },
    }
  }
  if (url.split('?', 1)[0] !== OWN_PATH) return { status: 404, text: `the metrics are at ${OWN_PATH}` }
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: method, headers: { Allow: 'GET, HEAD' } }
  return undefined
}

async function answer(req: IncomingMessage, res: ServerResponse, own: OwnPort) {
  const send = (status: number, type: string, text: string, headers = {}) => {
    const length = Buffer.byteLength(text)
    res.writeHead(status, { 'Content-Type': type, 'Content-Length': length, 'Cache-Control': 'no-store', ...headers })
    res.end(req.method === 'HEAD' ? undefined : text)
  }
  const refusal = refusalOf(req, own)
  if (refusal) return send(refusal.status, 'text/plain; charset=utf-8', `${refusal.text}\n`, refusal.headers)
  try {
    const { type, text } = await own.scrape(req)
    send(200, type, text)
  } catch (error) {
    own.failed(error)
    send(500, 'text/plain; charset=utf-8', 'the metrics could not be read; the log says why\n')
  }
}

/** Resolves with the server once it listens; rejects with a StartError. It does not keep the process alive. */
export function openOwnPort(own: OwnPort): Promise<{ readonly server: Server; readonly url: string }> {
  const { host, port } = own
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000, maxHeaderSize: 8_192 }, (req, res) => {
    void answer(req, res, own)
  })
  server.unref()
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'EADDRINUSE'
          ? `port ${port} of ${host} is in use; set another \`port\` (0: any that is free), or stop what listens there`
          : `the metrics cannot be served on ${host}:${port}: ${cause.message}`
      reject(new StartError(why, { at: [...own.at, 'port'], exitCode: 1, cause }))
    })
    server.listen(port, host, () => {
      server.on('error', own.failed)
      const { address, family, port: open } = server.address() as AddressInfo
      resolve({ server, url: `http://${family === 'IPv6' ? `[${address}]` : address}:${open}${OWN_PATH}` })
    })
  })
}
