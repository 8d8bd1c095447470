// A `fetch` that goes through an HTTP proxy, for networks that let nothing else out. Node's own `fetch` knows none
// before version 24, and takes no agent of another copy of undici; so it is undici's, loaded when it is first used.
import { AuthError } from '../errors.ts'
import { printableUrl } from '../printable.ts'
import { createProxyDispatcher } from './proxy-dispatcher.ts'
import { loadUndici } from './undici.ts'

export interface ProxyFetchOptions {
  /**
   * The proxy, such as `http://proxy.acme.example:3128`; a user and password in it are sent to it alone. `env`: as
   * HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment say, in either case of letters; loopback addresses are
   * then reached without one.
   */
  readonly proxy: string | URL
}

const proxied = new WeakSet<object>()

/** True for a `fetch` of `createProxyFetch`: names are looked up by its proxy, so no address can be judged here. */
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

type Undici = typeof import('undici')

async function load(
  proxy: string,
): Promise<{ fetch: Undici['fetch']; dispatcher: InstanceType<Undici['Dispatcher']> }> {
  const undici = await loadUndici()
  return { fetch: undici.fetch, dispatcher: createProxyDispatcher(undici, proxy) }
}

/**
 * A `fetch` that reaches everything through a proxy (CONNECT, also for plain http). Give it to `createAuthFetch` as
 * `fetch`; not beside `networkPolicy.blockPrivateNetworks`, which cannot judge what a proxy connects to. Throws an
 * AuthError `invalid_options` for what is no proxy; with its first request, where `undici` is not installed.
 */
export function createProxyFetch({ proxy: given }: ProxyFetchOptions): typeof fetch {
  const proxy = checkProxy(given)
  let loaded: ReturnType<typeof load> | undefined
  const proxyFetch: typeof fetch = async (input, init) => {
    loaded ??= load(proxy)
    const { fetch: undiciFetch, dispatcher } = await loaded
    // A Request of Node's own is foreign to it.
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
