// Metadata documents of clients that mean no good, over https, and hosts in processes of their own that trust its certificate.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { configText, startCli } from '../../../cli/run-cli.ts'
import { makeFolder } from '../../../config/folder.ts'
import { REDIRECT } from '../../../support/form-browser.ts'
import type { IdentityProvider } from '../../../support/identity-provider.ts'

/** A name that the hosts of these tests find, see `preload`. */
export const NAME = 'documents.example'
const NAMES = [
  `DNS:${NAME}`,
  'DNS:localhost',
  'DNS:*.localhost',
  'IP:127.0.0.1',
  'IP:127.0.0.2',
  'IP:0.0.0.0',
  'IP:::1',
  'IP:::',
]
export const HUGE = 100 * 1_048_576
const CHUNK = Buffer.alloc(65_536, 0x20)

export interface Documents {
  readonly port: number
  readonly certificate: string
  /** TCP connections, and requests by their path. */
  connections: number
  readonly requests: string[]
  /** Bytes that were taken of what has no end; drips of what is slow. */
  taken: number
  drips: number
  /** Bodies that were cut before their end. */
  cut: number
  /** By path: what is said instead of, or beside, a client's metadata. */
  readonly said: Map<string, unknown>
  readonly types: Map<string, Record<string, string>>
  stop(): Promise<void>
}

function makeKeys(folder: string) {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${NAMES.join(',')}`]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], { stdio: 'pipe' })
  return { key: readFileSync(key), cert: readFileSync(cert), file: cert }
}

/** Listens on all addresses of this machine. */
export async function startDocuments(): Promise<Documents> {
  const { key, cert, file } = makeKeys(await makeFolder({}))
  const bomb = gzipSync(Buffer.alloc(HUGE, 0x20))
  const server: Server = createServer({ key, cert }, (req, res) => {
    const path = req.url ?? ''
    documents.requests.push(path)
    res.on('close', () => {
      if (!res.writableFinished) documents.cut += 1
    })
    const headers = { 'Content-Type': 'application/json', ...documents.types.get(path) }
    if (path.startsWith('/slow')) {
      const timer = setInterval(() => {
        documents.drips += 1
        res.write(' ')
      }, 1_000)
      res.on('close', () => clearInterval(timer))
      return
    }
    if (path.startsWith('/silent')) return
    if (path.startsWith('/upgrade')) {
      req.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n')
      return
    }
    if (path.startsWith('/huge')) {
      const more = () => {
        while (documents.taken < HUGE) {
          documents.taken += CHUNK.length
          if (!res.write(CHUNK)) return
        }
        res.end()
      }
      res.on('drain', more)
      return more()
    }
    if (path.startsWith('/bomb')) return void res.writeHead(200, { ...headers, 'Content-Encoding': 'gzip' }).end(bomb)
    if (path.startsWith('/redirect')) {
      return void res.writeHead(Number(path.slice(-3)), { Location: `https://127.0.0.1:${documents.port}/good` }).end()
    }
    const said = documents.said.get(path)
    res.writeHead(200, headers).end(typeof said === 'string' ? said : JSON.stringify(said ?? goodAt(documents, path)))
  })
  server.on('connection', () => {
    documents.connections += 1
  })
  server.on('tlsClientError', () => undefined)
  const documents: Documents = {
    port: 0,
    certificate: file,
    connections: 0,
    requests: [],
    taken: 0,
    drips: 0,
    cut: 0,
    said: new Map(),
    types: new Map(),
    stop() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
  server.listen(0, '::')
  await once(server, 'listening')
  return Object.assign(documents, { port: (server.address() as AddressInfo).port })
}

export const idAt = ({ port }: Documents, path: string) => `https://${NAME}:${port}${path}`

export const goodAt = (documents: Documents, path: string): Record<string, unknown> => ({
  client_id: idAt(documents, path),
  client_name: 'Documented',
  redirect_uris: [REDIRECT],
  token_endpoint_auth_method: 'none',
})

/**
 * What a host finds under NAME: an address of this machine, whatever it was told at first. With `open` the name server answers
 * with a public address, and the network routes connections to that port here: the sockets do so once the host has accepted
 * the address.
 */
const preload = (open: number | undefined) => `
import dns from 'node:dns'
import net from 'node:net'
import { syncBuiltinESMExports } from 'node:module'
const PUBLIC = { address: '93.184.215.14', family: 4 }
const HERE = { address: '127.0.0.1', family: 4 }
const answer = (found, options, done) => options.all ? done(null, [found]) : done(null, found.address, found.family)
const { lookup } = dns
dns.lookup = (name, options, done) =>
  name === '${NAME}' ? answer(${open === undefined ? 'HERE' : 'PUBLIC'}, options, done) : lookup(name, options, done)
const { lookup: ask } = dns.promises
dns.promises.lookup = async (name, options) => {
  if (name !== '${NAME}') return ask(name, options)
  return options?.all ? [PUBLIC] : PUBLIC
}
syncBuiltinESMExports()
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...given) {
  const [options] = Array.isArray(given[0]) ? given[0] : given
  const { host, port, lookup: judge } = options ?? {}
  if (host === '${NAME}' && Number(port) === ${open} && judge)
    options.lookup = (name, asked, done) =>
      judge(name, asked, error => (error ? done(error) : answer(HERE, asked, done)))
  return connect.apply(this, given)
}
`

const CLIENTS = "clients: { redirects: ['https://app.example/**', 'http://127.0.0.1:*/**'] }"

/** A host whose provider is `idp`. `open`: a port on this machine that passes for public; `proxied`: believes X-Forwarded-For. */
export async function startHostOf(
  idp: IdentityProvider,
  { certificate }: Documents,
  { open, proxied = true }: { readonly open?: number; readonly proxied?: boolean } = {},
) {
  const provider = JSON.stringify(idp.options())
  const config = configText({
    http: `{ port: 0, trustProxy: ${proxied} }`,
    routes: "{ '/mcp': { toolsets: 'first', authorize: true } }",
    plugins: `'auth-jwt': {}, 'resource-metadata': {}, 'auth-bridge': { provider: ${provider}, allow: { everyone: true }, ${CLIENTS} }`,
  })
  const folder = await makeFolder({ 'mcp.config.mjs': config, 'preload.mjs': preload(open) })
  const env = { NODE_EXTRA_CA_CERTS: certificate, NODE_OPTIONS: `--import ${join(folder, 'preload.mjs')}` }
  const running = startCli(['start'], folder, env)
  const url = await running.listening()
  idp.redirects.add(`${url}/auth/callback`)
  const memory = () => {
    const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${running.child.pid}/status`, 'utf8')) ?? []
    return Number(kilobytes) * 1_024
  }
  return { issuer: `${url}/auth`, resource: `${url}/mcp`, memory }
}
