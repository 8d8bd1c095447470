// Hosts that speak HTTPS with a certificate of the test's own, and clients that speak TLS byte by byte.
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { type Config, defineTool } from '../../core/index.ts'
import { type Authority, type Pair, tlsFolder } from '../support/certificates.ts'
import { modernRequest, type RpcMessage } from '../support/rpc.ts'
import { type LogLine, type StartedHost, startHost, type TestConfig } from '../support/start-host.ts'

type Tls = NonNullable<NonNullable<Config['http']>['tls']>

export const echo = defineTool({
  name: 'echo',
  input: { type: 'object', properties: { text: { type: 'string' } } },
  handler: ({ text = 'echoed' }: { text?: string }) => text,
})

export const CONFIG = {
  toolsets: { all: [echo] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, health: {} },
} satisfies TestConfig

export interface SecureHost extends StartedHost {
  readonly folder: string
}

/** Writes these as `cert.pem` and `key.pem` into a folder. */
export function writePair({ cert, key }: Pair, folder = tlsFolder()): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'cert.pem'), cert)
  writeFileSync(join(folder, 'key.pem'), key)
  return folder
}

export const FILES: Tls = { cert: './cert.pem', key: './key.pem' }

/** A host with this certificate, from files. */
export async function startSecure(
  pair: Pair,
  { tls, http, ...config }: Partial<TestConfig> & { readonly tls?: Partial<Tls> } = {},
): Promise<SecureHost> {
  const folder = writePair(pair)
  const started = await startHost(
    { ...CONFIG, ...config, http: { port: 0, ...http, tls: { ...FILES, ...tls } } },
    folder,
  )
  return { ...started, folder }
}

export interface SecureAnswer {
  readonly status: number
  readonly text: string
  readonly message: RpcMessage
}

type From = Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'session' | 'maxVersion'>

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: string
}

/** One request on a connection of its own. */
export const ask = (url: string, from: From, { method = 'GET', headers = {}, body }: Asked = {}) =>
  new Promise<SecureAnswer>((resolve, reject) => {
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
    request(url, { ...from, agent: false, method, headers: given as Record<string, string> }, res => {
      let text = ''
      res.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      res.once('error', reject).once('end', () => {
        resolve({ status: res.statusCode ?? 0, text, message: text.startsWith('{') ? JSON.parse(text) : undefined })
      })
    })
      .once('error', reject)
      .end(body)
  })

/** `tools/call` of 2026-07-28. */
export function call(url: string, from: From, name = 'echo', args: object = {}) {
  const { headers, body } = modernRequest('tools/call', { name, arguments: args })
  const all = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
  return ask(url, from, { method: 'POST', headers: all, body })
}

/** A connection after its handshake. A reset by the peer is an end like any other. */
export async function openSecure(url: string, authority: Pick<Authority, 'cert'>, more: From = {}): Promise<TLSSocket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), ca: authority.cert, ...more })
  await once(socket, 'secureConnect')
  socket.on('error', () => undefined)
  return socket
}

/** What the log says of handshakes that failed. */
export const handshakeFailures = (log: readonly LogLine[]) =>
  log.filter(({ message }) => message === 'TLS handshake failed').map(({ level, reason }) => ({ level, reason }))
