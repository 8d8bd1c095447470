// A `fetch` of undici through a dispatcher, which decides where and how to connect.
import type { Dispatcher } from 'undici'

export type Undici = typeof import('undici')

/** The signals of each response body. A signal without other references can be garbage-collected before it aborts. */
const signals = new WeakMap<object, readonly (AbortSignal | undefined)[]>()

/** undici removes `Authorization` and `Cookie` on a redirect to another origin, but keeps `DPoP`. */
function withoutForeignProof(dispatcher: Dispatcher, first: string): Dispatcher {
  let left = false
  return dispatcher.compose(dispatch => (request, handler) => {
    left ||= String(request.origin) !== first
    if (!left) return dispatch(request, handler)
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
    const asked = new Request(input, init)
    // The signal of `asked` can be garbage-collected.
    const given = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    const stop = new AbortController()
    const signal = given ? AbortSignal.any([given, stop.signal]) : stop.signal
    const { url, method, redirect } = asked
    const headers = [...asked.headers] as [string, string][]
    const body = asked.body === null ? null : await asked.arrayBuffer()
    loaded ??= load()
    const { fetch, dispatcher: shared } = await loaded
    const dispatcher = asked.headers.has('dpop') ? withoutForeignProof(shared, new URL(url).origin) : shared
    try {
      const response = await fetch(url, { method, headers, redirect, body, signal, dispatcher })
      // undici reads and drops the body of a 205, which can be endless.
      if (response.status === 205) stop.abort()
      if (response.body) {
        // Each further encoding multiplies the work for a small response.
        if (response.headers.get('content-encoding')?.includes(',')) {
          throw new TypeError('the response has more than one content encoding')
        }
        signals.set(response.body, [given, signal])
      }
      return response as unknown as Response
    } catch (thrown) {
      stop.abort()
      throw thrown
    }
  }
}
