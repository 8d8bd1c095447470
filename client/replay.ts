// One request that may have to be sent more than once: what `fetch` was given, split into what stays the same and what
// authorization adds. Bodies are sent again as they were given; a stream can be sent once only.

export interface ReplayableRequest {
  readonly url: URL
  /** In capitals. */
  readonly method: string
  readonly headers: Headers
  readonly signal: AbortSignal | undefined
  /** False where the body is a stream, which is gone once it was sent. */
  readonly replayable: boolean
  /** Sends it, with these headers instead of its own. */
  send(fetcher: typeof fetch, headers: Headers): Promise<Response>
}

const isReplayable = (body: unknown): boolean =>
  typeof body !== 'object' ||
  body === null ||
  !(
    body instanceof ReadableStream ||
    Symbol.asyncIterator in body ||
    typeof (body as { pipe?: unknown }).pipe === 'function'
  )

/** In a browser addresses may be relative. */
function urlOf(text: string): URL | undefined {
  try {
    return new URL(text, (globalThis as { location?: { href: string } }).location?.href)
  } catch {
    return undefined
  }
}

/** `init` wins over a Request's own fields, as in `fetch`. Undefined for an address that `fetch` will refuse. */
export function createReplayable(input: string | URL | Request, init: RequestInit = {}): ReplayableRequest | undefined {
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
    // A Request is used up when it is sent: a copy is sent, and it stays for the next time.
    send: (fetcher, headers) => fetcher(request ? request.clone() : input, { ...init, headers }),
  }
}
