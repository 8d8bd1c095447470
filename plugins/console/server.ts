// The server of the console's port: guard, session, routing of the API, and the page.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { addressKey, parseJson } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { isObject } from '../../core/plugin.ts'
import { createHttpServer, readBody } from '../../core/transport.ts'
import { formatAuthority, startListening } from '../families/separate-port/index.ts'
import { type Login, type LoginMethods, type Me, PATHS, SECRET_HEADER } from './api.ts'
import { limitConnections } from './connections.ts'
import { createPageServer, findPage } from './files.ts'
import { createGuard, type Refusal, refusal, SECURITY_HEADERS } from './guard.ts'
import type { Logins, OperatorSession } from './login.ts'
import type { RoleLogin } from './role-login.ts'

/** A request with a valid session. */
export interface ApiRequest {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly session: OperatorSession
  readonly query: URLSearchParams
  /** The JSON body of a POST; `{}` for a GET. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Returns the JSON of the response; undefined if it has responded itself. Throws an `ApiFailure`. */
export type ApiHandler = (request: ApiRequest) => object | undefined | Promise<object | undefined>

/** An error whose message is sent to the page. */
export class ApiFailure extends Error {
  readonly refusal: Refusal
  constructor(status: number, error: string, message: string) {
    super(message)
    this.refusal = refusal(status, error, message)
  }
}

interface ServerSettings {
  readonly host: InternalHost
  readonly port: number
  readonly address: string
  readonly allowedHosts: readonly string[]
  readonly makeServer: Parameters<typeof createHttpServer>[3]
  readonly logins: Logins
  readonly roleLogin: RoleLogin | undefined
  readonly takesTokens: boolean
  readonly appPages: { serve(path: string, req: IncomingMessage, res: ServerResponse): void }
  readonly meOf: (session: OperatorSession) => Me
  /** By `METHOD path`. */
  readonly handlers: Readonly<Record<string, ApiHandler>>
}

/** Milliseconds. */
const TIME_LIMITS = { requestTimeout: 5_000, keepAliveTimeout: 5_000, writeTimeout: 10_000 }
const MAX_CONNECTIONS = 64
/** Bytes. */
const MAX_BODY = 256 * 1_024
/** Characters of a login token. */
const MAX_TOKEN = 1_024
/** IPv6 networks count as one address. */
const NETWORK = 64
const MAX_URL = 4_096

const NOT_BUILT =
  '<!doctype html><html lang="en"><title>Console</title><p>The page is not built. Run <code>npm run build</code>.</p></html>'

const parse = (text: string): Readonly<Record<string, unknown>> => {
  try {
    const body = text === '' ? {} : parseJson(text)
    if (isObject(body)) return body
  } catch {
    // Reported below.
  }
  throw new ApiFailure(400, 'bad_request', 'The body must be a JSON object.')
}

async function readJson(req: IncomingMessage) {
  const { 'content-length': length } = req.headers
  if (Number(length ?? 0) > MAX_BODY) throw new ApiFailure(413, 'bad_request', 'The body is too large.')
  try {
    return parse(await readBody(req, MAX_BODY))
  } catch (error) {
    if (error instanceof ApiFailure) throw error
    throw new ApiFailure(413, 'bad_request', 'The body cannot be read or is too large.')
  }
}

const cookiesIn = ({ headers }: IncomingMessage, name: string): string[] =>
  (headers.cookie ?? '').split(';').flatMap(part => {
    const [key, value = ''] = part.trim().split('=')
    return key === name ? value : []
  })

function send(req: IncomingMessage, res: ServerResponse, status: number, value: object | undefined, headers = {}) {
  const body = value === undefined ? undefined : Buffer.from(JSON.stringify(value))
  res.writeHead(status, {
    'Cache-Control': 'no-store',
    ...(body && { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': body.length }),
    ...headers,
  })
  res.end(req.method === 'HEAD' ? undefined : body)
}

export interface ConsoleServer {
  readonly server: Server
  /** Such as `http://127.0.0.1:9465`. */
  readonly url: string
}

/** Resolves once the server listens; rejects with a StartError. Does not keep the process alive. */
export async function openConsoleServer(settings: ServerSettings): Promise<ConsoleServer> {
  const { host, port, address, makeServer, logins, roleLogin, takesTokens, handlers, meOf, appPages } = settings
  const isTls = makeServer !== undefined
  const guard = createGuard({ host: address, isTls, allowedHosts: settings.allowedHosts })
  const page = createPageServer(findPage())
  let cookieName = ''

  function cookieOf({ headers }: IncomingMessage, value: string, maxAge: number): string {
    const isSecure = isTls || headers.origin?.startsWith('https:')
    return `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAge}${isSecure ? '; Secure' : ''}`
  }

  /** The origins that the browser may have opened: a proxy can terminate TLS. */
  const originsOf = ({ headers }: IncomingMessage) =>
    (isTls ? ['https'] : ['http', 'https']).map(scheme => `${scheme}://${headers.host?.toLowerCase()}`)

  function logIn(req: IncomingMessage, res: ServerResponse, body: Readonly<Record<string, unknown>>) {
    const { token, verifier } = body
    if (typeof token !== 'string' || token === '' || token.length > MAX_TOKEN) {
      throw new ApiFailure(400, 'bad_request', 'The token is missing.')
    }
    const from = addressKey(req.socket.remoteAddress ?? '', NETWORK)
    const user = typeof verifier === 'string' ? roleLogin?.redeem(token, verifier, originsOf(req)) : undefined
    const result = logins.logIn(token, from, user)
    if (result.kind === 'accepted') {
      const { cookie, secret, session } = result
      const maxAge = Math.floor((session.expiresAt - host.clock.now()) / 1_000)
      const login: Login = { ...meOf(session), secret }
      return send(req, res, 200, login, { 'Set-Cookie': cookieOf(req, cookie, maxAge) })
    }
    if (result.kind === 'blocked')
      throw new ApiFailure(429, 'too_many_requests', 'Too many failed logins. Try again in a minute.')
    host.log.warn({ code: 'MH3605', ip: from }, 'A login to the console was refused')
    throw new ApiFailure(401, 'unauthorized', 'This token is invalid, expired or was already used.')
  }

  async function serveApi(path: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const method = req.method === 'HEAD' ? 'GET' : (req.method ?? '')
    if (path === PATHS.login && method === 'GET') {
      const signIn = roleLogin?.signInUrl(originsOf(req))
      const methods: LoginMethods = { tokens: takesTokens, ...(signIn !== undefined && { signIn }) }
      return send(req, res, 200, methods)
    }
    if (path === PATHS.login && method === 'POST') return logIn(req, res, await readJson(req))
    if (path.startsWith(`${PATHS.app}/`)) return appPages.serve(path, req, res)
    const secret = String(req.headers[SECRET_HEADER] ?? '')
    const session = logins.find(secret, cookiesIn(req, cookieName))
    if (!session) throw new ApiFailure(401, 'unauthorized', 'Log in first.')
    connections.keep(req, res)
    if (path === PATHS.logout && method === 'POST') {
      logins.logOut(secret)
      return send(req, res, 204, undefined, {
        'Set-Cookie': cookieOf(req, '', 0),
        'Clear-Site-Data': '"cache", "storage"',
      })
    }
    const handler = Object.hasOwn(handlers, `${method} ${path}`) ? handlers[`${method} ${path}`] : undefined
    if (!handler) throw new ApiFailure(404, 'not_found', 'There is no such path.')
    const query = new URLSearchParams(req.url?.split('?')[1] ?? '')
    const body = method === 'POST' ? await readJson(req) : {}
    const value = await handler({ req, res, session, query, body })
    if (value !== undefined) send(req, res, 200, value)
  }

  async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) res.setHeader(name, value)
    const { url = '' } = req
    const [path = ''] = url.split('?')
    try {
      const refused = url.length > MAX_URL ? refusal(414, 'bad_request', 'The URL is too long.') : guard(req)
      if (refused) throw new ApiFailure(refused.status, refused.error, refused.message)
      if (path.startsWith('/api/')) return await serveApi(path, req, res)
      if (req.method === 'POST') throw new ApiFailure(404, 'not_found', 'There is no such path.')
      if (page.serve(path, req, res)) return
      if (page.isBuilt || /\.\w+$/.test(path)) throw new ApiFailure(404, 'not_found', 'There is no such file.')
      res.writeHead(503, { 'Cache-Control': 'no-store', 'Content-Type': 'text/html; charset=utf-8' }).end(NOT_BUILT)
    } catch (error) {
      const isKnown = error instanceof ApiFailure
      if (!isKnown)
        host.log.error({ code: 'MH3606', err: error, path: path.slice(0, 100) }, 'A request to the console failed')
      if (res.headersSent) return void res.destroy()
      const { status, ...body } = isKnown ? error.refusal : refusal(500, 'internal', 'The request failed. See the log.')
      send(req, res, status, body)
    }
  }

  const events = {
    pipelined: (ip?: string) => host.log.debug({ ip }, 'closed a connection to the console that pipelined requests'),
    slowReaders: (readers: object) =>
      host.log.debug({ ...readers }, 'closed connections to the console because their clients do not read'),
  }
  const { server } = createHttpServer((req, res) => void respond(req, res), TIME_LIMITS, events, makeServer, host.clock)
  const connections = limitConnections(server, MAX_CONNECTIONS)
  const failed = (err: unknown) => host.log.error({ code: 'MH3606', err }, 'The server of the console failed')
  // Workers would share the port, but not the logins.
  const place = { code: 'MH3607', port, host: address, isExclusive: true }
  const { port: open } = await startListening(server, host.config.at, place, failed)
  // Cookies do not distinguish ports.
  cookieName = `${isTls ? '__Host-' : ''}mcp-console-${open}`
  return { server, url: `${isTls ? 'https' : 'http'}://${formatAuthority(address, open)}` }
}
