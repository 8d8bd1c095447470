// How undici goes through an HTTP proxy, here: past it to this machine's own servers where the environment names the proxy,
// and with failures of the proxy told apart from those of the server.
import type { Agent, buildConnector, Dispatcher, Pool } from 'undici'
import { ProxyFailure } from '../proxy-failure.ts'
import { isLoopback } from '../resolve-options.ts'

type Undici = typeof import('undici')

const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']

/** Whether anything goes through a proxy where this says how: `none`, its URL, or `env`, which need not name one. */
export const usesProxy = (proxy: string): boolean =>
  proxy !== 'none' && (proxy !== 'env' || VARIABLES.some(name => (process.env[name] ?? '') !== ''))

/** The variables that name this proxy. */
const namesOf = (origin: string): string =>
  VARIABLES.filter(name => {
    const value = process.env[name] ?? ''
    return URL.canParse(value) && new URL(value).origin === origin
  }).join(' and ')

/** Of connections to a proxy. */
const watch =
  (connect: buildConnector.connector, proxy: string): buildConnector.connector =>
  (options, callback) =>
    connect(options, (error, socket) => {
      if (!error) return callback(null, socket as NonNullable<typeof socket>)
      const { code = 'no connection' } = error as NodeJS.ErrnoException
      callback(new ProxyFailure(`the HTTP proxy ${proxy} cannot be reached (${code})`, code, error), null)
    })

/** `proxy`: its URL, or `env`: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say, for all but loopback addresses. */
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
