// What went wrong with an HTTP proxy on the way: no fault of the server, which was not asked.

/** Has the network's code, such as ECONNREFUSED. */
export class ProxyFailure extends Error {
  readonly code: string

  constructor(what: string, code: string, cause?: unknown) {
    super(what, { cause })
    this.code = code
  }
}

/** The first one among the causes. */
function proxyFailureIn(thrown: unknown): ProxyFailure | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    if (error instanceof ProxyFailure) return error
  }
  return undefined
}

/** Why `fetch` got no answer, as the end of a sentence that begins with the address; and what to do. */
export function tellUnreached(thrown: unknown, code?: string): { readonly what: string; readonly fix: string } {
  const proxy = proxyFailureIn(thrown)
  if (proxy) return { what: `was not asked: ${proxy.message}`, fix: 'check that proxy' }
  const why = code === undefined ? '' : ` (${code})`
  return { what: `cannot be reached${why}`, fix: 'check the address and that the server runs' }
}
