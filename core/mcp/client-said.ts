// Bounds on what a client says and the host keeps or repeats: its ids, what it calls itself, the URIs it names. Used by
// whoever reads such a thing first; past a bound it is refused, and nothing of it is kept.
import { HostError } from '../http/errors.ts'
import { MAX_CLIENT_FACT, MAX_CLIENT_VALUES, MAX_ID, MAX_SHOWN, MAX_URI } from './limits.ts'

/** At most so many bytes of UTF-8; most texts are known to fit by their length. */
export const fits = (text: string, bytes: number): boolean =>
  text.length <= bytes && (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes)

/** An id or a progress token: a short text, or an integer that JSON numbers hold exactly. */
export const isShortName = (value: unknown): value is string | number =>
  typeof value === 'string' ? fits(value, MAX_ID) : Number.isSafeInteger(value)

/** A client's text as an error may repeat it. */
export const shown = (text: string): string => (text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`)

/** Throws `invalidParams` for a URI that is too long to be kept or looked up. */
export function checkUri(uri: string): void {
  if (!fits(uri, MAX_URI)) throw new HostError('invalidParams', { detail: `a URI has at most ${MAX_URI} bytes` })
}

/** True where a JSON value has at most so many values in it, itself included. */
function isSimple(value: unknown, most: number): boolean {
  let count = 0
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    if (++count > most) return false
    const next = rest.pop()
    if (typeof next !== 'object' || next === null) continue
    if (Array.isArray(next) && next.length > most) return false
    // Not by Object.values: of an object with very many keys it would copy them all before one is counted.
    for (const key in next) {
      if (rest.length > most) return false
      rest.push((next as Record<string, unknown>)[key])
    }
  }
  return true
}

/** What is wrong with something that a client says of itself; undefined: nothing. The text alone says little of what it costs. */
export function sizeFault(name: string, fact: unknown): string | undefined {
  if (fact === undefined) return undefined
  if (isSimple(fact, MAX_CLIENT_VALUES) && fits(JSON.stringify(fact), MAX_CLIENT_FACT)) return undefined
  return `${name} is too large: at most ${MAX_CLIENT_FACT} bytes of JSON, with at most ${MAX_CLIENT_VALUES} values`
}

/** Throws `invalidParams` for an `initialize` whose client says too much of itself. */
export function checkClientFacts({ clientInfo, capabilities }: Readonly<Record<string, unknown>>): void {
  const detail = sizeFault('clientInfo', clientInfo) ?? sizeFault('capabilities', capabilities)
  if (detail !== undefined) throw new HostError('invalidParams', { detail })
}
