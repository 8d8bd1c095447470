// Repeatable requests, and redirects within their origin.
import { AuthError } from './errors.ts'
import { printableUrl } from './text.ts'

const MAX_REDIRECTS = 5

/** Rewrites the request after a redirect (Fetch §4.4). */
function redirectedInit(init: RequestInit, status: number): RequestInit {
  const method = (init.method ?? 'GET').toUpperCase()
  const becomesGet = status === 303 ? method !== 'HEAD' : (status === 301 || status === 302) && method === 'POST'
  if (!becomesGet) return init
  const { body: _, ...rest } = init
  const headers = new Headers(init.headers)
  for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language']) headers.delete(name)
  return { ...rest, method: 'GET', headers }
}

async function toInit(request: Request): Promise<RequestInit> {
  const { method, headers, signal } = request
  return { method, headers, signal, ...(request.body !== null && { body: await request.clone().arrayBuffer() }) }
}

/** `fetch` would send headers and body to other origins. Rejects with an AuthError `redirected`. */
export function withinOrigin(base: typeof fetch): typeof fetch {
  return async (input, given = {}) => {
    const request = input instanceof Request ? input : undefined
    if ((given.redirect ?? request?.redirect ?? 'follow') !== 'follow') return base(input, given)
    let url = request?.url ?? String(input)
    let response = await base(request ? request.clone() : input, { ...given, redirect: 'manual' })
    if (response.type === 'opaqueredirect') return base(input, given)
    let init = { ...given }
    for (let hops = 0; [301, 302, 303, 307, 308].includes(response.status); hops++) {
      const location = response.headers.get('location')
      if (location === null || !URL.canParse(location, url)) return response
      const to = new URL(location, url)
      await response.body?.cancel()
      if (to.origin !== new URL(url).origin || hops === MAX_REDIRECTS) {
        const where = hops === MAX_REDIRECTS ? 'in a circle' : `to ${printableUrl(to)}`
        throw new AuthError(`${printableUrl(url)} redirects ${where}, where this request is not sent`, {
          code: 'redirected',
          fix: 'use that URL, if it is the intended server',
        })
      }
      if (hops === 0 && request) init = { ...(await toInit(request)), ...given }
      init = redirectedInit(init, response.status)
      url = to.href
      response = await base(url, { ...init, redirect: 'manual' })
    }
    return response
  }
}

export type ReplayableRequest = NonNullable<ReturnType<typeof createReplayableRequest>>

const isReplayable = (body: unknown): boolean =>
  typeof body !== 'object' ||
  body === null ||
  !(
    body instanceof ReadableStream ||
    Symbol.asyncIterator in body ||
    typeof (body as { pipe?: unknown }).pipe === 'function'
  )

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text, (globalThis as { location?: { href: string } }).location?.href)
  } catch {
    return undefined
  }
}

export function createReplayableRequest(input: string | URL | Request, init: RequestInit = {}) {
  const request = input instanceof Request ? input : undefined
  const url = urlOf(request ? request.url : String(input))
  if (!url) return undefined
  const headers = new Headers(init.headers ?? request?.headers)
  const body = init.body ?? undefined
  return {
    url,
    method: (init.method ?? request?.method ?? 'GET').toUpperCase(),
    headers,
    signal: init.signal ?? request?.signal ?? undefined,
    replayable: isReplayable(body),
    send: (fetcher: typeof fetch, headers: Headers): Promise<Response> =>
      fetcher(request ? request.clone() : input, { ...init, headers }),
  }
}
