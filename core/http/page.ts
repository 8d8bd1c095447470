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

/**
 * True if the page is sent instead of the error. The status is then 200, except for 401. `isFront`: the page of `/`
 * without a route replaces `notFound`.
 */
export function isShownInstead(ctx: Answering, kind: HostErrorKind | undefined, isFront: boolean): boolean {
  if (ctx.req.method === 'GET' || ctx.req.method === 'HEAD') ctx.vary('Accept')
  if (!isVisit(ctx.req) || kind === undefined) return false
  if (!(isFront ? kind === 'notFound' : knownKind(kind)?.page)) return false
  if (ctx.status !== 401) {
    ctx.status = 200
    ctx.remove('Allow')
  }
  return true
}
