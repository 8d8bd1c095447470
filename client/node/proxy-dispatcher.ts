// The undici dispatcher for an HTTP proxy. Requires the optional package undici.
import type { Agent, buildConnector, Dispatcher, Pool } from 'undici'
import { AuthError } from '../errors.ts'
import { ProxyFailure } from '../http.ts'
import { isLoopback } from '../resolve-options.ts'

export type Undici = typeof import('undici')

const INSTALL = 'npm i undici@7'

export async function loadUndici(): Promise<Undici> {
  try {
    return await import('undici')
  } catch (cause) {
    const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND'
    if (!isMissing) throw cause
    throw new AuthError('going through an HTTP proxy needs undici, an optional package that is not installed', {
      code: 'invalid_options',
      fix: `run: ${INSTALL}`,
      cause,
    })
  }
}

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
