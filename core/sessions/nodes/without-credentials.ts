// What may be written down of a request's headers.
import type { IncomingHttpHeaders } from 'node:http'

const SECRET_HEADERS = new Set(['authorization', 'cookie', 'proxy-authorization'])

/** What may be written down of a request. */
export const withoutCredentials = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !SECRET_HEADERS.has(name)))
