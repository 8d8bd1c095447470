// `fetch` functions of undici: only to allowed addresses, or through an HTTP proxy.

import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Agent, buildConnector, Dispatcher, Pool } from 'undici'
import { AuthError } from '../errors.ts'
import { ProxyError } from '../http.ts'
import { allowedHosts, classifyAddress } from '../net-policy.ts'
import { isLoopback } from '../resolve-options.ts'
import { printableUrl } from '../text.ts'

type Undici = typeof import('undici')

/** The signals of each response body. A signal without other references can be garbage-collected before it aborts. */
const signalMap = new WeakMap<object, readonly (AbortSignal | undefined)[]>()

/** undici removes `Authorization` and `Cookie` on a redirect to another origin, but keeps `DPoP`. */
function stripForeignProof(dispatcher: Dispatcher, first: string): Dispatcher {
  let isForeign = false
  return dispatcher.compose(dispatch => (request, handler) => {
    isForeign ||= String(request.origin) !== first
    if (!isForeign) return dispatch(request, handler)
    const headers = Object.entries(request.headers ?? {}).filter(([name]) => name.toLowerCase() !== 'dpop')
    return dispatch({ ...request, headers: Object.fromEntries(headers) }, handler)
  })
}

/** Buffers request bodies. undici loads with the first request, because it loads slowly. */
export function fetchThrough(createDispatcher: (undici: Undici) => Dispatcher): typeof fetch {
  const load = async () => {
    const undici = await import('undici')
    return { fetch: undici.fetch, dispatcher: createDispatcher(undici) }
  }
  let loaded: ReturnType<typeof load> | undefined
  return async (input, init) => {
    const request = new Request(input, init)
    // The signal of `request` can be garbage-collected.
    const outer = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    const stop = new AbortController()
    const signal = outer ? AbortSignal.any([outer, stop.signal]) : stop.signal
    const { url, method, redirect } = request
    const headers = [...request.headers] as [string, string][]
    const body = request.body === null ? null : await request.arrayBuffer()
    loaded ??= load()
    const { fetch, dispatcher: shared } = await loaded
    const dispatcher = request.headers.has('dpop') ? stripForeignProof(shared, new URL(url).origin) : shared
    try {
      const response = await fetch(url, { method, headers, redirect, body, signal, dispatcher })
      // undici reads and drops the body of a 205, which can be endless.
      if (response.status === 205) stop.abort()
      if (response.body) {
        // Each further encoding multiplies the work for a small response.
        if (response.headers.get('content-encoding')?.includes(',')) {
          throw new TypeError('the response has more than one content encoding')
        }
        signalMap.set(response.body, [outer, signal])
      }
      return response as unknown as Response
    } catch (thrown) {
      stop.abort()
      throw thrown
    }
  }
}

interface GuardOptions {
  /** Hosts with no address restrictions, as in `networkPolicy.allowHosts`. */
  readonly allowHosts?: readonly string[]
  /** Resolves names. Default: `dns.lookup`. The checked result is used to connect. */
  readonly lookup?: LookupFunction
}

const isBlocked = (address: string): boolean => isIP(address) === 0 || classifyAddress(address) !== 'public'

const refusalError = (host: string, address: string): AuthError =>
  new AuthError(`${host} is at ${address}, inside a network which the network policy does not allow`, {
    code: 'blocked_address',
    fix: `if this is intended, list "${host}" in allowHosts`,
  })

const notFoundError = (host: string) => Object.assign(new Error(`${host} cannot be resolved`), { code: 'ENOTFOUND' })

/** Rejects if a name has no address or a refused one. */
function guardLookup(lookup: LookupFunction, isBlockedAddress: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, found, family) => {
      const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [found]
      const blocked = error ? undefined : addresses.find(isBlockedAddress)
      if (blocked !== undefined) callback(refusalError(hostname, blocked), [], 0)
      // node:net throws an uncaught exception for an empty list.
      else if (!error && addresses.length === 0) callback(notFoundError(hostname), [], 0)
      else callback(error, found, family)
    })
  }
}

/** Returns the agent for a URL: unrestricted for an allowed host, otherwise guarded. Throws `blocked_address`. */
function createGuardedAgents(
  undici: Pick<Undici, 'Agent'>,
  { allowHosts = [], lookup = systemLookup as LookupFunction }: GuardOptions,
  options: Agent.Options = {},
) {
  const isAllowed = allowedHosts(allowHosts)
  const agent = (isBlockedAddress: (address: string) => boolean) =>
    new undici.Agent({ ...options, connect: { lookup: guardLookup(lookup, isBlockedAddress) } })
  const open = agent(() => false)
  const guarded = agent(isBlocked)
  return {
    isAllowed,
    agentFor(url: URL): Dispatcher {
      if (isAllowed(url)) return open
      const literal = url.hostname.replace(/^\[|\]$/g, '')
      if (isIP(literal) !== 0 && isBlocked(literal)) throw refusalError(url.host, literal)
      return guarded
    },
    async close(): Promise<void> {
      await Promise.all([open.destroy(), guarded.destroy()])
    },
  }
}

const MAX_ORIGINS = 100

/** Opens connections for plugins: https to public addresses, and allowed hosts. `connections`: maximum per origin. */
export async function openConnections({
  allowHosts,
  connections,
}: {
  readonly allowHosts: readonly string[]
  readonly connections: number
}) {
  const { agentFor, isAllowed, close } = createGuardedAgents(await import('undici'), { allowHosts }, { connections })
  const agents = new LRUCache<string, Dispatcher>({ max: MAX_ORIGINS })
  function find(url: URL): Dispatcher {
    if (url.protocol === 'https:' || (url.protocol === 'http:' && isAllowed(url))) return agentFor(url)
    throw new AuthError(`${url.host} would be reached over plain http`, {
      code: 'insecure_endpoint',
      fix: `use https; if plain http is meant, list "${url.host}" in allowHosts`,
    })
  }
  return {
    /** Throws an AuthError `blocked_address` or `insecure_endpoint`. */
    agentFor(origin: string): Dispatcher {
      const agent = agents.get(origin) ?? find(new URL(origin))
      agents.set(origin, agent)
      return agent
    },
    /** Ends all requests. */
    close,
  }
}

/**
 * Creates a `fetch` that connects only to public addresses; others reject with `blocked_address`. Request bodies are
 * buffered, cookies ignored. Use it as `fetch` with `networkPolicy: { blockPrivateNetworks: true }`.
 */
export function createGuardedFetch(options: GuardOptions = {}): typeof fetch {
  const guarded = fetchThrough(undici => {
    const { agentFor } = createGuardedAgents(undici, options)
    return new undici.Agent().compose(
      () => (request, handler) => agentFor(new URL(String(request.origin))).dispatch(request, handler),
    )
  })
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    if (!/^https?:$/.test(url.protocol)) throw new TypeError(`${url.protocol} is not http or https`)
    try {
      return await guarded(input, init)
    } catch (thrown) {
      const { cause } = thrown as Error
      throw AuthError.is(cause) ? cause : thrown
    }
  }
}

const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']

export const usesProxy = (proxy: string): boolean =>
  proxy !== 'none' && (proxy !== 'env' || VARIABLES.some(name => (process.env[name] ?? '') !== ''))

const originNames = (origin: string): string =>
  VARIABLES.filter(name => {
    const value = process.env[name] ?? ''
    return URL.canParse(value) && new URL(value).origin === origin
  }).join(' and ')

const watchConnect =
  (connect: buildConnector.connector, proxy: string): buildConnector.connector =>
  (options, callback) =>
    connect(options, (error, socket) => {
      if (!error) return callback(null, socket as NonNullable<typeof socket>)
      const { code = 'no connection' } = error as NodeJS.ErrnoException
      callback(new ProxyError(`the HTTP proxy ${proxy} cannot be reached (${code})`, code, error), null)
    })

export function createProxyDispatcher(undici: Undici, proxy: string, options: Agent.Options = {}): Dispatcher {
  const clientFactory = (url: URL, value: object) => {
    const from = proxy === 'env' ? `of ${originNames(url.origin)}` : 'of the options'
    const { connect } = value as { connect: buildConnector.connector }
    return new undici.Pool(url, { ...(value as Pool.Options), connect: watchConnect(connect, `${url.origin} ${from}`) })
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

const proxyFetches = new WeakSet<object>()

/** The proxy resolves names, so addresses cannot be checked here. */
export const isProxyFetch = (value: unknown): boolean => typeof value === 'function' && proxyFetches.has(value)

function checkProxy(proxy: string | URL): string {
  const text = String(proxy)
  if (text === 'env') return text
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text
  throw new AuthError(`proxy is "${printableUrl(text)}"`, {
    code: 'invalid_options',
    fix: 'use the http or https URL of the proxy, such as http://proxy.acme.example:3128, or env',
  })
}

/**
 * Creates a `fetch` through a proxy (CONNECT, also for plain http). Not compatible with
 * `networkPolicy.blockPrivateNetworks`. Throws an AuthError `invalid_options`.
 */
export function createProxyFetch({ proxy: value }: ProxyFetchOptions): typeof fetch {
  const proxy = checkProxy(value)
  const proxyFetch = fetchThrough(undici => createProxyDispatcher(undici, proxy))
  proxyFetches.add(proxyFetch)
  return proxyFetch
}
