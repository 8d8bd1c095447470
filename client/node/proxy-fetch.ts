// A `fetch` through an HTTP proxy.
import type { Agent, buildConnector, Dispatcher, Pool } from 'undici'
import { AuthError } from '../errors.ts'
import { ProxyFailure } from '../http.ts'
import { isLoopback } from '../resolve-options.ts'
import { printableUrl } from '../text.ts'
import { fetchThrough, type Undici } from './fetch-through.ts'

const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']

export const usesProxy = (proxy: string): boolean =>
  proxy !== 'none' && (proxy !== 'env' || VARIABLES.some(name => (process.env[name] ?? '') !== ''))

const namesOf = (origin: string): string =>
  VARIABLES.filter(name => {
    const value = process.env[name] ?? ''
    return URL.canParse(value) && new URL(value).origin === origin
  }).join(' and ')

const watch =
  (connect: buildConnector.connector, proxy: string): buildConnector.connector =>
  (options, callback) =>
    connect(options, (error, socket) => {
      if (!error) return callback(null, socket as NonNullable<typeof socket>)
      const { code = 'no connection' } = error as NodeJS.ErrnoException
      callback(new ProxyFailure(`the HTTP proxy ${proxy} cannot be reached (${code})`, code, error), null)
    })

export function createProxyDispatcher(undici: Undici, proxy: string, options: Agent.Options = {}): Dispatcher {
  const clientFactory = (url: URL, given: object) => {
    const from = proxy === 'env' ? `of ${namesOf(url.origin)}` : 'that was given'
    const { connect } = given as { connect: buildConnector.connector }
    return new undici.Pool(url, { ...(given as Pool.Options), connect: watch(connect, `${url.origin} ${from}`) })
  }
  if (proxy !== 'env') return new undici.ProxyAgent({ ...options, clientFactory, uri: proxy })
  const direct = new undici.Agent(options)
  return new undici.EnvHttpProxyAgent({ ...options, clientFactory }).compose(
    dispatch => (request, handler) =>
      isLoopback(new URL(String(request.origin)).hostname)
        ? direct.dispatch(request, handler)
        : dispatch(request, handler),
  )
}

interface ProxyFetchOptions {
  /**
   * Proxy URL, such as `http://proxy.acme.example:3128`, optionally with user and password. `env`: from HTTPS_PROXY,
   * HTTP_PROXY and NO_PROXY (either case); loopback addresses bypass the proxy.
   */
  readonly proxy: string | URL
}

const proxied = new WeakSet<object>()

/** The proxy resolves names, so addresses cannot be checked here. */
export const isProxyFetch = (given: unknown): boolean => typeof given === 'function' && proxied.has(given)

function checkProxy(proxy: string | URL): string {
  const text = String(proxy)
  if (text === 'env') return text
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text
  throw new AuthError(`proxy is "${printableUrl(text)}"`, {
    code: 'invalid_options',
    fix: "give the proxy's http or https URL, such as http://proxy.acme.example:3128, or env",
  })
}

/**
 * Creates a `fetch` through a proxy (CONNECT, also for plain http). Not compatible with
 * `networkPolicy.blockPrivateNetworks`. Throws an AuthError `invalid_options`.
 */
export function createProxyFetch({ proxy: given }: ProxyFetchOptions): typeof fetch {
  const proxy = checkProxy(given)
  const proxyFetch = fetchThrough(undici => createProxyDispatcher(undici, proxy))
  proxied.add(proxyFetch)
  return proxyFetch
}
