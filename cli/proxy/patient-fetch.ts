// How bytes travel to the server: through the proxy of the environment, with cookies for whatever balances its load, and
// without a clock on streams that say nothing for a while.
import type { Agent as AgentOf, Dispatcher } from 'undici'
import { createProxyDispatcher, loadUndici, usesProxy } from '../../client/node/proxy-dispatcher.ts'
import { assertInstalled } from '../../core/http/optional-packages.ts'

/** How long connecting can take, milliseconds. */
const CONNECT_TIMEOUT = 10_000
const MAX_COOKIES = 50
const MAX_COOKIE = 4_096

/** Cookies of one origin, for as long as the process lives. Whatever else they say, they go nowhere else. */
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

/** That of Node's own `fetch`, by the name under which undici keeps it. Looked for before another copy could take its place. */
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
 * A `fetch` for the server at `url` and the servers that it refers to. `proxy`: the URL of a proxy, `none`, or `env`, which reads
 * HTTPS_PROXY, HTTP_PROXY and NO_PROXY and excludes loopback addresses. Throws a StartError if a required package is missing.
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
