// Which types of answer a client accepts (basic/transports/streamable-http, "Sending Messages").
import Negotiator from 'negotiator'
import { HostError } from '../../core/index.ts'

const JSON_TYPE = 'application/json'
const SSE_TYPE = 'text/event-stream'

/** What is sent is UTF-8, so a range that asks for that charset is met too. */
const withCharset = (type: string) => [type, `${type};charset=utf-8`]

/** Clients send one of a few headers; the answer is remembered for the first of them. */
const remembered = new Map<string, ReadonlySet<string>>()
const MAX_REMEMBERED = 200

function acceptedTypes(accept: string): ReadonlySet<string> {
  const known = remembered.get(accept)
  if (known) return known
  const offers = [JSON_TYPE, SSE_TYPE].flatMap(withCharset)
  const types = new Set(
    new Negotiator({ headers: { accept } }).mediaTypes(offers).map(type => type.split(';')[0] ?? ''),
  )
  if (remembered.size < MAX_REMEMBERED && accept.length < 200) remembered.set(accept, types)
  return types
}

function demand(accept: string | undefined, needed: readonly string[]) {
  // Without the header any type is accepted (RFC 9110 section 12.5.1).
  if (accept === undefined) return
  const types = acceptedTypes(accept)
  if (!needed.every(type => types.has(type))) {
    throw new HostError('notAcceptable', { detail: `Accept must allow ${needed.join(' and ')}` })
  }
}

/** A POST is answered with either. Throws `notAcceptable`. */
export const demandBoth = (accept: string | undefined): void => demand(accept, [JSON_TYPE, SSE_TYPE])

/** A GET is answered with a stream. Throws `notAcceptable`. */
export const demandStream = (accept: string | undefined): void => demand(accept, [SSE_TYPE])
