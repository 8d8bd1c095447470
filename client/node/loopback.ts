// Receives the answer of a login on this machine (RFC 8252 §7.3): opens the browser and listens on a loopback address
// until the browser comes back with the state that was sent.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AuthError } from '../errors.ts'
import { type LoopbackHost, type LoopbackListener, listenOnLoopback } from './loopback-listener.ts'
import { GET_ONLY, NOT_FOUND, OTHER_HOST, type Page, RECEIVED, REFUSED, sendPage, UNEXPECTED } from './loopback-page.ts'
import { openBrowser as openDefaultBrowser } from './open-browser.ts'

export interface LoopbackRedirectOptions {
  /** In the redirect URI as given. `localhost` listens on 127.0.0.1 and ::1. Default `127.0.0.1`. */
  readonly host?: LoopbackHost | undefined
  /** 0 (default): any free one, the same for as long as this redirect is used. */
  readonly port?: number | undefined
  /** With port 0: this one where it is free. */
  readonly preferredPort?: number | undefined
  /** Default `/callback`. */
  readonly path?: string | undefined
  /** Shows the person the authorization URL; a rejection ends the login. Default: their browser. */
  readonly openBrowser?: ((url: URL) => Promise<void> | void) | undefined
}

export interface LoopbackRedirect {
  /** For the option `redirectUri`. */
  readonly redirectUri: string
  /**
   * For the option `authorizationRedirectDelegate`: resolves with the whole callback URL. Rejects with the signal's
   * reason on abort, and with an AuthError when the port is taken. Any number of logins, also at the same time.
   */
  readonly delegate: (authorizationUrl: URL, redirectUri: string, context: { signal: AbortSignal }) => Promise<URL>
  /** Ends waiting logins with `aborted` and stops listening. */
  close(): Promise<void>
}

/**
 * Listens only while a login waits; a free port (`port: 0`) is reserved from here on to the end of the first one.
 * Throws `invalid_options` for a host that is not loopback, or a path or port that is none.
 */
export async function createLoopbackRedirect(options: LoopbackRedirectOptions = {}): Promise<LoopbackRedirect> {
  const { host = '127.0.0.1', port = 0, path = '/callback', openBrowser = openDefaultBrowser } = options
  checkOptions(host, port, path)
  const waiting = new Map<string, { resolve(url: URL): void; reject(reason: unknown): void }>()
  const answers = new Set<Promise<void>>()
  let listener: Promise<LoopbackListener> | undefined
  let stopped: Promise<void> = Promise.resolve()

  const reserved = port === 0 ? await reserve(options.preferredPort) : undefined
  reserved?.keepProcess(false)
  if (reserved) listener = Promise.resolve(reserved)
  const redirect = new URL(`http://${host === '::1' ? '[::1]' : host}:${reserved?.port ?? port}${path}`)

  async function reserve(preferred = 0): Promise<LoopbackListener> {
    try {
      return await listenOnLoopback(host, preferred, receive)
    } catch (error) {
      if (preferred === 0) throw error
      return listenOnLoopback(host, 0, receive)
    }
  }

  function receive(request: IncomingMessage, response: ServerResponse): void {
    // Sent, or the browser went away before.
    const sent = new Promise<void>(resolve => response.once('close', resolve))
    answers.add(sent)
    sent.then(() => answers.delete(sent))
    sendPage(response, answer(request))
  }

  function answer({ method, url = '', headers }: IncomingMessage): Page {
    // A name that leads here by somebody else's DNS is not ours (DNS rebinding).
    if (headers.host?.toLowerCase() !== redirect.host) return OTHER_HOST
    const callback = url.startsWith('/') ? new URL(redirect.origin + url) : undefined
    if (callback?.pathname !== redirect.pathname) return NOT_FOUND
    if (method !== 'GET') return GET_ONLY
    const [state, ...others] = callback.searchParams.getAll('state')
    const login = state === undefined || others.length > 0 ? undefined : waiting.get(state)
    if (state === undefined || !login) return UNEXPECTED
    waiting.delete(state)
    login.resolve(callback)
    return callback.searchParams.has('error') ? REFUSED : RECEIVED
  }

  async function start(): Promise<void> {
    listener ??= stopped.then(() => listenOnLoopback(host, Number(redirect.port || 80), receive))
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
    if (current) stopped = current.then(ready => ready.close([...answers])).catch(() => {})
    await stopped
  }

  async function delegate(authorizationUrl: URL, redirectUri: string, { signal }: { signal: AbortSignal }) {
    const state = authorizationUrl.searchParams.get('state')
    if (redirectUri !== redirect.href || !state) throw misused(redirectUri, redirect.href)
    signal.throwIfAborted()
    const { promise, resolve, reject } = settleable<URL>()
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    waiting.set(state, { resolve, reject })
    // Its rejection is heard below, or comes after the result and says nothing any more.
    promise.catch(() => {})
    try {
      await start()
      // A program that shows a page may run until the person closes it, so the answer can come before its end.
      Promise.resolve(signal.aborted ? undefined : openBrowser(authorizationUrl)).catch(reject)
      return await promise
    } finally {
      signal.removeEventListener('abort', abort)
      waiting.delete(state)
      if (waiting.size === 0) await stop()
    }
  }

  return {
    redirectUri: redirect.href,
    delegate,
    async close() {
      const reason = new AuthError('the login was ended before the browser came back', { code: 'aborted' })
      for (const { reject } of waiting.values()) reject(reason)
      await stop()
    },
  }
}

function settleable<T>() {
  let resolve: (value: T) => void = () => {}
  let reject: (reason: unknown) => void = () => {}
  const promise = new Promise<T>((...settle) => {
    ;[resolve, reject] = settle
  })
  return { promise, resolve, reject }
}

function checkOptions(host: string, port: number, path: string): void {
  const fix = 'give a host of localhost, 127.0.0.1 or ::1, a port from 0 to 65535, and a path such as /callback'
  const wrong = (what: string) =>
    new AuthError(`a loopback redirect cannot have ${what}`, { code: 'invalid_options', fix })
  if (!['localhost', '127.0.0.1', '::1'].includes(host)) throw wrong(`the host ${JSON.stringify(host)}`)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw wrong(`the port ${port}`)
  if (!path.startsWith('/') || new URL(`http://localhost${path}`).pathname !== path) {
    throw wrong(`the path ${JSON.stringify(path)}`)
  }
}

function misused(given: string, ours: string): AuthError {
  return new AuthError(`the loopback redirect of ${ours} got a login without state, or for ${given}`, {
    code: 'invalid_options',
    fix: 'give its `redirectUri` and its `delegate` together as `redirectUri` and `authorizationRedirectDelegate`',
  })
}
