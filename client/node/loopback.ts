// Receives authorization responses on a loopback port and shows a static result page.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AuthError } from '../errors.ts'
import { withAbort } from '../http.ts'
import { openBrowser as openDefaultBrowser } from './open-browser.ts'

const STYLE = [
  'body{font:1.1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem;color:#1c1e21;background:#fff}',
  'h1{font-size:1.5rem}',
  '@media (prefers-color-scheme:dark){body{color:#e6e6e6;background:#18191a}}',
].join('')

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}

type Page = readonly [status: number, title: string, text: string]

const RECEIVED: Page = [
  200,
  // The program has not verified the response yet.
  'Response received',
  'You can close this window and return to the program that opened it. It shows the result of the login.',
]
// The response is not verified yet, so its text is not shown.
const REFUSED: Page = [
  200,
  'You are not logged in',
  'Access was denied. The program that opened this window shows the reason. You can close this window.',
]
const UNEXPECTED: Page = [
  400,
  'This login is no longer active',
  'It has ended, or another program started it. Start it again from the program.',
]
const NOT_FOUND: Page = [404, 'Not found', 'This URL does not exist.']
const GET_ONLY: Page = [405, 'Method not allowed', 'Only GET is allowed for this URL.']
const OTHER_HOST: Page = [421, 'Wrong host', 'This request is for another host.']

function sendPage(response: ServerResponse, [status, title, text]: Page): void {
  if (status === 405) response.setHeader('allow', 'GET')
  response.writeHead(status, HEADERS)
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
      `<title>${title}</title><style>${STYLE}</style><h1>${title}</h1><p>${text}</p></html>`,
  )
}

export type LoopbackHost = 'localhost' | '127.0.0.1' | '::1'

/** The port of an earlier redirect URI on this host. A client registration is valid only for its redirect URI. */
export function previousPort(redirectUri: string | undefined, host: LoopbackHost): number | undefined {
  const { hostname, port } = URL.canParse(redirectUri ?? '') ? new URL(redirectUri ?? '') : { hostname: '', port: '' }
  return hostname.replace(/^\[|\]$/g, '') === host && port !== '' ? Number(port) : undefined
}

type LoopbackListener = ReturnType<typeof listenerOf>

const PORT_ATTEMPTS = 10

/** `port` 0: any free port. Rejects with an AuthError if the port is unavailable. */
async function listenOnLoopback(host: LoopbackHost, port: number, handler: RequestListener): Promise<LoopbackListener> {
  for (let attempt = 1; ; attempt++) {
    const servers: Server[] = []
    try {
      const first = await bind(host === '::1' ? '::1' : '127.0.0.1', port, handler)
      servers.push(first)
      const bound = (first.address() as AddressInfo).port
      if (host === 'localhost') servers.push(...(await bindIfAvailable('::1', bound, handler)))
      return listenerOf(servers, bound)
    } catch (error) {
      await Promise.all(servers.map(waitForClose))
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EADDRINUSE' && port === 0 && attempt < PORT_ATTEMPTS) continue
      throw explainError(error, host, port)
    }
  }
}

function listenerOf(servers: readonly Server[], port: number) {
  return {
    port,
    keepProcess(keep: boolean): void {
      for (const server of servers) keep ? server.ref() : server.unref()
    },
    async close(unfinished: Iterable<Promise<void>>): Promise<void> {
      const ended = Promise.all(servers.map(waitForClose))
      await Promise.all(unfinished)
      for (const server of servers) server.closeAllConnections()
      await ended
    },
  }
}

async function bind(address: string, port: number, handler: RequestListener): Promise<Server> {
  const server = createServer(handler)
  await once(server.listen({ host: address, port, exclusive: true }), 'listening')
  return server
}

async function bindIfAvailable(address: string, port: number, handler: RequestListener): Promise<Server[]> {
  try {
    return [await bind(address, port, handler)]
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT') return []
    throw error
  }
}

const waitForClose = (server: Server) => new Promise<void>(resolve => server.close(() => resolve()))

function explainError(cause: unknown, host: string, port: number): AuthError {
  const { code, message } = cause as NodeJS.ErrnoException
  const where = `port ${port} of ${host}`
  if (code === 'EADDRINUSE') {
    return new AuthError(`${where} is in use by another program, so the login response cannot be received`, {
      code: 'temporarily_unavailable',
      retryable: true,
      cause,
      fix: 'end that program (or the other login), or choose another port and register that redirect URI',
    })
  }
  return new AuthError(`${where} cannot be listened on (${code ?? message})`, {
    code: 'invalid_options',
    cause,
    fix: 'choose a port from 1024 on, or 0 for any free one, and a loopback address that this machine has',
  })
}

export interface LoopbackRedirectOptions {
  /** Host of the redirect URI. `localhost` listens on 127.0.0.1 and ::1. Default `127.0.0.1`. */
  readonly host?: LoopbackHost | undefined
  /** 0 (default): any free port, fixed for this redirect. */
  readonly port?: number | undefined
  readonly preferredPort?: number | undefined
  readonly path?: string | undefined
  /** Shows the authorization URL; a rejection ends the login. Default: the system browser. */
  readonly openBrowser?: ((url: URL) => Promise<void> | void) | undefined
}

/** Listens only during logins. Throws `invalid_options` for an invalid host, path or port. */
export async function createLoopbackRedirect(options: LoopbackRedirectOptions = {}) {
  const { host = '127.0.0.1', port = 0, path = '/callback', openBrowser = openDefaultBrowser } = options
  checkOptions(host, port, path)
  const logins = new Map<string, { resolve(url: URL): void; reject(reason: unknown): void }>()
  const pages = new Set<Promise<void>>()
  let listener: Promise<LoopbackListener> | undefined
  let closing: Promise<void> = Promise.resolve()

  const reserved = port === 0 ? await reservePort(options.preferredPort) : undefined
  reserved?.keepProcess(false)
  if (reserved) listener = Promise.resolve(reserved)
  const redirect = new URL(`http://${host === '::1' ? '[::1]' : host}:${reserved?.port ?? port}${path}`)

  async function reservePort(preferred = 0): Promise<LoopbackListener> {
    try {
      return await listenOnLoopback(host, preferred, receive)
    } catch (error) {
      if (preferred === 0) throw error
      return listenOnLoopback(host, 0, receive)
    }
  }

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const sent = new Promise<void>(resolve => response.once('close', resolve))
    pages.add(sent)
    sent.then(() => pages.delete(sent))
    sendPage(response, answer(request))
  }

  function answer({ method, url = '', headers }: IncomingMessage): Page {
    // Prevents DNS rebinding.
    if (headers.host?.toLowerCase() !== redirect.host) return OTHER_HOST
    const callback = url.startsWith('/') ? new URL(redirect.origin + url) : undefined
    if (callback?.pathname !== redirect.pathname) return NOT_FOUND
    if (method !== 'GET') return GET_ONLY
    const [state, ...otherLogins] = callback.searchParams.getAll('state')
    const login = state === undefined || otherLogins.length > 0 ? undefined : logins.get(state)
    if (state === undefined || !login) return UNEXPECTED
    logins.delete(state)
    login.resolve(callback)
    return callback.searchParams.has('error') ? REFUSED : RECEIVED
  }

  async function start(): Promise<void> {
    listener ??= closing.then(() => listenOnLoopback(host, Number(redirect.port || 80), receive))
    const current = listener
    try {
      const ready = await current
      ready.keepProcess(true)
    } catch (error) {
      if (listener === current) listener = undefined
      throw error
    }
  }

  async function stop(): Promise<void> {
    const current = listener
    listener = undefined
    if (current) closing = current.then(ready => ready.close([...pages])).catch(() => {})
    await closing
  }

  async function delegate(
    authorizationUrl: URL,
    redirectUri: string,
    { signal }: { signal: AbortSignal },
  ): Promise<URL> {
    const state = authorizationUrl.searchParams.get('state')
    if (redirectUri !== redirect.href || !state) throw misuseError(redirectUri, redirect.href)
    signal.throwIfAborted()
    const returned = new Promise<URL>((resolve, reject) => logins.set(state, { resolve, reject }))
    returned.catch(() => {})
    try {
      await start()
      // A browser command can run until its window closes.
      Promise.resolve(signal.aborted ? undefined : openBrowser(authorizationUrl)).catch(error =>
        logins.get(state)?.reject(error),
      )
      return await withAbort(returned, signal)
    } finally {
      logins.delete(state)
      if (logins.size === 0) await stop()
    }
  }

  return {
    /** The value for the option `redirectUri`. */
    redirectUri: redirect.href,
    /** The value for `authorizationRedirectDelegate`. Rejects on abort, and with an AuthError if the port is taken. */
    delegate,
    /** Ends pending logins with `aborted` and stops listening. */
    async close(): Promise<void> {
      const reason = new AuthError('the login was cancelled before the browser returned', { code: 'aborted' })
      for (const { reject } of logins.values()) reject(reason)
      await stop()
    },
  }
}

function checkOptions(host: string, port: number, path: string): void {
  const fix = 'use the host localhost, 127.0.0.1 or ::1, a port from 0 to 65535, and a path such as /callback'
  const wrong = (what: string) =>
    new AuthError(`a loopback redirect cannot have ${what}`, { code: 'invalid_options', fix })
  if (!['localhost', '127.0.0.1', '::1'].includes(host)) throw wrong(`the host ${JSON.stringify(host)}`)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw wrong(`the port ${port}`)
  if (!path.startsWith('/') || new URL(`http://localhost${path}`).pathname !== path) {
    throw wrong(`the path ${JSON.stringify(path)}`)
  }
}

function misuseError(given: string, ours: string): AuthError {
  return new AuthError(`the loopback redirect of ${ours} got a login without state, or for ${given}`, {
    code: 'invalid_options',
    fix: 'set its `redirectUri` and its `delegate` together as `redirectUri` and `authorizationRedirectDelegate`',
  })
}
