// A `fetch` through an HTTP proxy, by undici. This file exports no type of that optional package.
import { AuthError } from '../errors.ts'
import { printableUrl } from '../text.ts'
import { createProxyDispatcher, loadUndici, type Undici } from './proxy-dispatcher.ts'

export interface ProxyFetchOptions {
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

async function load(
  proxy: string,
): Promise<{ fetch: Undici['fetch']; dispatcher: InstanceType<Undici['Dispatcher']> }> {
  const undici = await loadUndici()
  return { fetch: undici.fetch, dispatcher: createProxyDispatcher(undici, proxy) }
}

/**
 * Creates a `fetch` through a proxy (CONNECT, also for plain http). Not compatible with
 * `networkPolicy.blockPrivateNetworks`. Throws an AuthError `invalid_options`.
 */
export function createProxyFetch({ proxy: given }: ProxyFetchOptions): typeof fetch {
  const proxy = checkProxy(given)
  let loaded: ReturnType<typeof load> | undefined
  const proxyFetch: typeof fetch = async (input, init) => {
    loaded ??= load(proxy)
    const { fetch: undiciFetch, dispatcher } = await loaded
    const request = input instanceof Request ? new Request(input, init) : undefined
    const url = request ? request.url : String(input)
    const own = request && {
      method: request.method,
      headers: request.headers,
      redirect: request.redirect,
      signal: request.signal,
      ...(request.body !== null && { body: await request.arrayBuffer() }),
    }
    const all = { ...(own ?? init), dispatcher } as unknown as Parameters<Undici['fetch']>[1]
    return (await undiciFetch(url, all)) as unknown as Response
  }
  proxied.add(proxyFetch)
  return proxyFetch
}
