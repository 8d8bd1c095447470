// A `fetch` with proxy support, cookies for load balancers, and no timeout on idle streams.
import { fetchThrough } from '../../client/node/fetch-through.ts'
import { createProxyDispatcher, usesProxy } from '../../client/node/proxy-fetch.ts'

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

const PATIENCE = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT } }

/**
 * Creates a `fetch` for the server at `url` and servers that it refers to. `proxy`: a URL, `none`, or `env` (HTTPS_PROXY,
 * HTTP_PROXY and NO_PROXY; loopback addresses excluded).
 */
export function createPatientFetch(url: string, proxy = 'env'): typeof fetch {
  const cookies = createCookies(new URL(url).origin)
  const go = fetchThrough(undici =>
    usesProxy(proxy) ? createProxyDispatcher(undici, proxy, PATIENCE) : new undici.Agent(PATIENCE),
  )
  return async (input, init) => {
    const address = input instanceof Request ? input.url : String(input)
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    const cookie = cookies.of(address)
    if (cookie !== '' && !headers.has('cookie')) headers.set('cookie', cookie)
    const response = await go(input, { ...init, headers })
    cookies.keep(address, response)
    return response
  }
}
