// The only fetch for client documents and keys: public https addresses, no redirects, limited.

import { LRUCache } from 'lru-cache'
import Provider from 'oidc-provider'
import type { Clock } from '../../../core/plugin.ts'

const MAX_DOCUMENT = 16_384
const TIMEOUT = 2_500
/** Cache lifetime, milliseconds: oidc-provider fetches the key set for each token request. */
const KEPT_FOR = 10_000
const MOST_KEPT = 1_000

export interface ClientFetchSettings {
  /** Resolves a name once, and connects to that address if it is public. */
  readonly guardedFetch: typeof fetch
  readonly mayFetch: (ip: string) => boolean
  readonly clock: Clock
}

async function readBytes(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_DOCUMENT) throw new Error(`the response has more than ${MAX_DOCUMENT} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

interface Kept {
  readonly headers: Headers
  readonly bytes: Uint8Array
}

export function createClientFetch({ guardedFetch, mayFetch, clock }: ClientFetchSettings) {
  const perf = { now: () => clock.monotonic() }
  const kept = new LRUCache<string, Promise<Kept>>({ max: MOST_KEPT, ttl: KEPT_FOR, ttlResolution: 0, perf })

  async function load(url: string, given: RequestInit['headers'], signal: AbortSignal): Promise<Kept> {
    if (!url.startsWith('https:')) throw new Error('the URL is not https')
    const ip = Provider.ctx?.ip
    // The consent page has no request context.
    if (ip !== undefined && !mayFetch(ip)) throw new Error('too many documents for one address in a minute')
    const response = await guardedFetch(url, { redirect: 'manual', signal, ...(given && { headers: given }) })
    const { status, headers, body } = response
    if (status === 200) return { headers, bytes: await readBytes(response) }
    await body?.cancel()
    throw new Error(`the response has the status ${status}`)
  }

  /** oidc-provider waits for each fetch without a limit. */
  async function loadInTime(url: string, given: RequestInit['headers']): Promise<Kept> {
    const stop = new AbortController()
    const { signal } = stop
    const late = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    const timer = clock.setTimeout(() => stop.abort(new Error(`no whole response within ${TIMEOUT} ms`)), TIMEOUT)
    try {
      return await Promise.race([load(url, given, signal), late])
    } finally {
      clock.clear(timer)
    }
  }

  return async (url: string, { headers: given }: RequestInit): Promise<Response> => {
    let loading = kept.get(url)
    if (!loading) {
      loading = loadInTime(url, given)
      kept.set(url, loading)
      loading.catch(() => kept.delete(url))
    }
    const { headers, bytes } = await loading
    return new Response(Buffer.from(bytes), { headers })
  }
}
