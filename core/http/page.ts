// HTML pages for people who open an endpoint in a browser.
import type { IncomingMessage } from 'node:http'
import { type HostErrorKind, knownKind } from './errors.ts'

const acceptedTypes = (accept: string): string[] =>
  accept.split(',').flatMap(range => {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    return parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [type]
  })

function isVisit({ method, headers: { accept = '' } }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const types = acceptedTypes(accept)
  return types.includes('text/html') && !types.includes('text/event-stream')
}

interface Answering {
  readonly req: IncomingMessage
  status: number
  vary(field: string): void
  remove(field: string): void
}

/** Whether to send the page instead of the error. The status is then 200, except for 401. */
export function isShownInstead(ctx: Answering, kind: HostErrorKind | undefined): boolean {
  if (ctx.req.method === 'GET' || ctx.req.method === 'HEAD') ctx.vary('Accept')
  if (!isVisit(ctx.req) || kind === undefined || !knownKind(kind)?.page) return false
  if (ctx.status !== 401) {
    ctx.status = 200
    ctx.remove('Allow')
  }
  return true
}

/** Headers of a page without scripts, forms and frames. `style`: hash of the style sheet. */
export const pageHeaders = (style: string): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src '${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
})
