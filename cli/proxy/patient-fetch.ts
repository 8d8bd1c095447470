// A `fetch` with proxy support and no timeout on idle streams.
import { createProxyDispatcher, fetchThrough, usesProxy } from '../../client/node/fetch.ts'

const CONNECT_TIMEOUT = 10_000
const PATIENCE = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT } }

/** `proxy`: a URL, `none`, or `env` (HTTPS_PROXY, HTTP_PROXY and NO_PROXY; loopback addresses excluded). */
export const createPatientFetch = (proxy = 'env'): typeof fetch =>
  fetchThrough(undici =>
    usesProxy(proxy) ? createProxyDispatcher(undici, proxy, PATIENCE) : new undici.Agent(PATIENCE),
  )
