// What a POST must look like before its body is read: content type, accepted types (basic/transports/streamable-http,
// "Sending Messages").
import type { IncomingHttpHeaders } from 'node:http'
import Negotiator from 'negotiator'
import { HostError } from '../../core/index.ts'

const JSON_TYPE = 'application/json'
const SSE_TYPE = 'text/event-stream'
/** What is sent is UTF-8, so a range that asks for that charset is met too. */
const OFFERED = [JSON_TYPE, SSE_TYPE].flatMap(type => [type, `${type};charset=utf-8`])

/** Clients send one of a few headers; the answer is remembered for the first of them. */
const remembered = new Map<string, boolean>()
const MAX_REMEMBERED = 200

function acceptsBoth(accept: string): boolean {
  const known = remembered.get(accept)
  if (known !== undefined) return known
  const allowed = new Negotiator({ headers: { accept } }).mediaTypes(OFFERED)
  const both = [JSON_TYPE, SSE_TYPE].every(type => allowed.some(offer => offer.startsWith(type)))
  if (remembered.size < MAX_REMEMBERED && accept.length < 200) remembered.set(accept, both)
  return both
}

function isJson(contentType: string): boolean {
  if (contentType === JSON_TYPE) return true
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map(parameter => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(parameter)?.[1]).find(Boolean)
  return type.trim() === JSON_TYPE && (charset === undefined || charset === 'utf-8' || charset === 'utf8')
}

/** Throws `notAcceptable` or `unsupportedMediaType`. */
export function negotiate(headers: IncomingHttpHeaders): void {
  const { accept, 'content-type': contentType = '' } = headers
  if (accept === undefined || !acceptsBoth(accept)) {
    throw new HostError('notAcceptable', { detail: `Accept must allow both ${JSON_TYPE} and ${SSE_TYPE}` })
  }
  if (!isJson(contentType)) throw new HostError('unsupportedMediaType', { detail: `Content-Type must be ${JSON_TYPE}` })
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    throw new HostError('unsupportedMediaType', { detail: 'a compressed body is not accepted' })
  }
}
