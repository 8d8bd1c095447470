// The last look at an error before it leaves the client: no known secret is in its texts, nor in what it was caused by.
// Each step already leaves them out; this holds also where a server plays one back in a place that nobody thought of.
import { AuthError } from './errors.ts'

type Scrub = (text: string) => string

/** Where a caller sends people, which has to stay what it is; there is no secret of ours in them. */
const KEPT = new Set(['authorizationUrl', 'state'])

const MAX_DEPTH = 4

/** True where a value, inspected, would show a secret. */
function shows(value: unknown, scrub: Scrub, depth = 0): boolean {
  if (typeof value === 'string') return scrub(value) !== value
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return false
  return Object.getOwnPropertyNames(value).some(name => {
    const { value: own } = Object.getOwnPropertyDescriptor(value, name) ?? {}
    // `stack` is a getter on newer engines.
    return shows(name === 'stack' ? (value as Error).stack : own, scrub, depth + 1)
  })
}

function scrubValue(value: unknown, scrub: Scrub): unknown {
  if (typeof value === 'string') return scrub(value)
  if (Array.isArray(value)) return value.map(one => scrubValue(one, scrub))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, scrubValue(one, scrub)]))
}

/** The caller's own error, as it is unless it shows a secret: then its texts alone, without them. */
function scrubCause(cause: unknown, scrub: Scrub): unknown {
  if (AuthError.is(cause)) return scrubError(cause, scrub)
  if (!shows(cause, scrub)) return cause
  if (!(cause instanceof Error)) return '[redacted]'
  const { name, code } = cause as Error & { readonly code?: unknown }
  return Object.assign(new Error(scrub(cause.message)), { name, ...(code !== undefined && { code }) })
}

/** The same error, whose texts are scrubbed; anything but an AuthError is the caller's, and stays untouched. */
export function scrubError<T>(thrown: T, scrub: Scrub): T {
  if (!AuthError.is(thrown)) return thrown
  for (const name of Object.getOwnPropertyNames(thrown)) {
    const property = Object.getOwnPropertyDescriptor(thrown, name)
    if (!property?.writable || KEPT.has(name) || name === 'stack') continue
    const value = name === 'cause' ? scrubCause(property.value, scrub) : scrubValue(property.value, scrub)
    if (value !== property.value) Object.defineProperty(thrown, name, { ...property, value })
  }
  if (thrown.stack !== undefined) thrown.stack = scrub(thrown.stack)
  return thrown
}
