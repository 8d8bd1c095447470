// A `fetch` with proxy support, cookies for load balancers, and no timeout on idle streams.
import type { Agent as AgentOf, Dispatcher } from 'undici'
import { createProxyDispatcher, loadUndici, usesProxy } from '../../client/node/proxy-dispatcher.ts'
import { assertInstalled } from '../../core/http/optional-packages.ts'

const CONNECT_TIMEOUT = 10_000
const MAX_COOKIES = 50
const MAX_COOKIE = 4_096

/** In-memory cookies of one origin. Cookie attributes are ignored. */
function createCookies(origin: string) {
  const kept = new Map<string, string>()
  return {
    keep(url: string, { headers }: Response) {
      if (new URL(url).origin !== origin) return
      for (const cookie of headers.getSetCookie()) {
        const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(cookie) ?? []
        if (name === undefined || value === undefined || cookie.length > MAX_COOKIE) continue
        kept.delete(name)
        const isOver = /;\s*max-age=(?:0|-\d+)\b/i.test(cookie)
        if (!isOver && kept.size < MAX_COOKIES) kept.set(name, value.trim())
      }
    },
    of: (url: string) =>
      new URL(url).origin === origin ? [...kept].map(([name, value]) => `${name}=${value}`).join('; ') : '',
  }
}

type AgentClass = new (options: AgentOf.Options) => AgentOf

/** The agent class of Node's own `fetch`, read before another undici copy can replace it. */
const OwnAgent = (() => {
  new Headers()
  const kept: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
  return kept instanceof Object && kept.constructor.name === 'Agent' ? (kept.constructor as AgentClass) : undefined
})()

async function connect(proxy: string): Promise<{ fetch: typeof fetch; dispatcher: Dispatcher }> {
  const options: AgentOf.Options = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT } }
  const isDirect = !usesProxy(proxy)
  if (isDirect && OwnAgent) return { fetch, dispatcher: new OwnAgent(options) }
  const undici = await loadUndici()
  const dispatcher = isDirect ? new undici.Agent(options) : createProxyDispatcher(undici, proxy, options)
  return { fetch: undici.fetch as unknown as typeof fetch, dispatcher }
}

/**
 * Creates a `fetch` for the server at `url` and servers that it refers to. `proxy`: a URL, `none`, or `env` (HTTPS_PROXY,
 * HTTP_PROXY and NO_PROXY; loopback addresses excluded). Throws a StartError for a missing package.
 */
export function createPatientFetch(url: string, proxy = 'env'): typeof fetch {
  if (usesProxy(proxy)) assertInstalled(['undici'], { what: 'going through an HTTP proxy' })
  const cookies = createCookies(new URL(url).origin)
  let connected: ReturnType<typeof connect> | undefined
  return async (input, init) => {
    connected ??= connect(proxy)
    const { fetch: go, dispatcher } = await connected
    const address = input instanceof Request ? input.url : String(input)
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    const cookie = cookies.of(address)
    if (cookie !== '' && !headers.has('cookie')) headers.set('cookie', cookie)
    const body =
      input instanceof Request && input.body !== null ? { method: input.method, body: await input.arrayBuffer() } : {}
    const sent = { ...body, ...init, headers: [...headers], dispatcher } as unknown as RequestInit
    const response = await go(address, sent)
    cookies.keep(address, response)
    return response
  }
}
