// `ctx.fetch`: ended with its call, by its time-out, and with the headers that tracing adds.

interface CallFetch {
  /** Of the call. */
  readonly signal: () => AbortSignal
  /** Milliseconds. */
  readonly timeout: number
  /** Headers that go along. */
  readonly headers: () => Readonly<Record<string, string>>
}

/** The headers of a request, where tracing adds to them. A context is carried on whole, or as the handler has it. */
function carry(
  headersToAdd: Readonly<Record<string, string>>,
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
): { headers: Headers } | undefined {
  const added = Object.entries(headersToAdd)
  if (added.length === 0) return undefined
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  if (added.some(([name]) => headers.has(name))) return undefined
  for (const [name, value] of added) headers.set(name, value)
  return { headers }
}

/** `ctx.fetch` of one call. */
export const createCallFetch =
  ({ signal, timeout, headers }: CallFetch): typeof fetch =>
  (input, init) => {
    const signals = [signal(), AbortSignal.timeout(timeout)]
    if (init?.signal) signals.push(init.signal)
    return fetch(input, { ...init, ...carry(headers(), input, init), signal: AbortSignal.any(signals) })
  }
