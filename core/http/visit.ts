// A person who opens an endpoint in a browser, told by what the browser accepts; and the headers of what they are shown.
import type { IncomingMessage } from 'node:http'
import type { HostErrorKind } from './errors.ts'

/** Media types that are accepted by name; a range of all is everybody's. */
const acceptedTypes = (accept: string): string[] =>
  accept.split(',').flatMap(range => {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    return parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [type]
  })

/** True for a GET or HEAD that wants HTML and no event stream. */
function isVisit({ method, headers: { accept = '' } }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const types = acceptedTypes(accept)
  return types.includes('text/html') && !types.includes('text/event-stream')
}

/** What a browser is shown a page for, in the place of what only clients can read. */
const SHOWN_INSTEAD: ReadonlySet<HostErrorKind> = new Set([
  'unauthorized',
  'methodNotAllowed',
  'notAcceptable',
  // Browsers accept anything as well, and so a stream.
  'sessionIdMissing',
])

/** What of a Koa context this is about. */
interface Answering {
  readonly req: IncomingMessage
  status: number
  vary(field: string): void
  remove(field: string): void
}

/** Whether a page is the answer, and not the error whose status is set: 401 keeps it, anything else is 200 then. */
export function isShownInstead(ctx: Answering, kind: HostErrorKind | undefined): boolean {
  if (ctx.req.method === 'GET' || ctx.req.method === 'HEAD') ctx.vary('Accept')
  if (!isVisit(ctx.req) || kind === undefined || !SHOWN_INSTEAD.has(kind)) return false
  if (ctx.status !== 401) {
    ctx.status = 200
    ctx.remove('Allow')
  }
  return true
}

/** A page that asks for nothing, runs nothing and is shown in no other. `style`: the hash of its own style sheet. */
export const pageHeaders = (style: string): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src '${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
})
