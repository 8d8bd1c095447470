// The id by which a request is found in the logs of all that it passed.
import type { IncomingHttpHeaders } from 'node:http'

const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/

/** The id that a request came with: 1 to 128 letters, digits and `_ . : / + = @ -`; undefined for anything else. */
export function requestIdIn(headers: Readonly<IncomingHttpHeaders>): string | undefined {
  const id = headers['x-request-id']
  return typeof id === 'string' && REQUEST_ID.test(id) ? id : undefined
}
