// An answer in words that can carry no secret: its status, its type and its length. What a server writes into a body that
// is not what was asked for may be anything, tokens included.
import type { HttpAnswer } from './http.ts'

/** The type is the server's own text too, so only those that answer anything in practice are named. */
const KNOWN_TYPE =
  /^(?:application\/(?:json|problem\+json|xml|xhtml\+xml|javascript|jwt|jose|octet-stream|x-www-form-urlencoded)|text\/(?:html|plain|xml|css|javascript|event-stream)|multipart\/form-data|image\/(?:png|jpeg|gif|svg\+xml))$/

function describeType(headers: Headers): string {
  const given = headers.get('content-type')
  if (given === null) return 'no content type'
  const [type = ''] = given.split(';', 1)
  const name = type.trim().toLowerCase()
  return KNOWN_TYPE.test(name) ? name : 'an unusual content type'
}

/** `text/html, 312 bytes` */
export const describeBody = ({ headers, length }: Pick<HttpAnswer, 'headers' | 'length'>): string =>
  length === 0 ? 'an empty body' : `${describeType(headers)}, ${length} byte${length === 1 ? '' : 's'}`

/** `HTTP 502 (text/html, 312 bytes)` */
export const describeAnswer = (answer: Pick<HttpAnswer, 'status' | 'headers' | 'length'>): string =>
  `HTTP ${answer.status} (${describeBody(answer)})`
