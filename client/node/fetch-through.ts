// A `fetch` of undici through a dispatcher, which decides where and how to connect.
import type { Dispatcher } from 'undici'

export type Undici = typeof import('undici')

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
    const { fetch, dispatcher } = await loaded
    try {
      const response = await fetch(url, { method, headers, redirect, body, signal, dispatcher })
      // undici reads and drops the body of a 205, which can be endless.
      if (response.status === 205) stop.abort()
      return response as unknown as Response
    } catch (thrown) {
      stop.abort()
      throw thrown
    }
  }
}
