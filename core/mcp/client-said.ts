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

/** At most so many bytes of JSON has a value beside its texts: those of a number, and quotes, colon, comma and brackets. */
const BESIDE_TEXTS = 33
/** At most so many bytes is a UTF-16 unit of a text: an escape. */
const MOST_OF_UNIT = 6

/**
 * A bound on the bytes of JSON of a value that has at most `most` values in it, itself included; undefined: it has more. Most
 * of what clients say is known by it to be small, and is not written for that.
 */
function boundOf(value: unknown, most: number): number | undefined {
  let count = 0
  let units = 0
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    if (++count > most) return undefined
    const next = rest.pop()
    if (typeof next === 'string') units += next.length
    if (typeof next !== 'object' || next === null) continue
    if (Array.isArray(next) && next.length > most) return undefined
    // Not by Object.values: of an object with very many keys it would copy them all before one is counted.
    for (const key in next) {
      if (rest.length > most) return undefined
      if (!Array.isArray(next)) units += key.length
      rest.push((next as Record<string, unknown>)[key])
    }
  }
  return units * MOST_OF_UNIT + count * BESIDE_TEXTS
}

/** What is wrong with something that a client says of itself; undefined: nothing. The text alone says little of what it costs. */
export function sizeFault(name: string, fact: unknown): string | undefined {
  if (fact === undefined) return undefined
  const bound = boundOf(fact, MAX_CLIENT_VALUES)
  if (bound !== undefined && (bound <= MAX_CLIENT_FACT || fits(JSON.stringify(fact), MAX_CLIENT_FACT))) return undefined
  return `${name} is too large: at most ${MAX_CLIENT_FACT} bytes of JSON, with at most ${MAX_CLIENT_VALUES} values`
}

/** Throws `invalidParams` for an `initialize` whose client says too much of itself. */
export function checkClientFacts({ clientInfo, capabilities }: Readonly<Record<string, unknown>>): void {
  const detail = sizeFault('clientInfo', clientInfo) ?? sizeFault('capabilities', capabilities)
  if (detail !== undefined) throw new HostError('invalidParams', { detail })
}
