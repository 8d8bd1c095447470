// Responses of the host's server. Added header fields are written with the head, which costs a fraction of `setHeader`.
import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { HostErrorKind } from './errors.ts'

type Given = OutgoingHttpHeaders | OutgoingHttpHeader[]

export class HostResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Names and values in turn. */
  #added: string[] | undefined

  add(name: string, value: string): void {
    if (this.#added) this.#added.push(name, value)
    else this.#added = [name, value]
  }

  override writeHead(status: number, ...rest: [(string | Given)?, Given?]): this {
    const added = this.#added
    this.#added = undefined
    if (!added) return super.writeHead(status, ...(rest as [string, Given]))
    const [only] = rest
    if (rest.length === 1 && isList(only) && this.getHeaderNames().length === 0) {
      return super.writeHead(status, [...only, ...missingIn(only, added)])
    }
    setAll(this, added)
    return super.writeHead(status, ...(rest as [string, Given]))
  }
}

/** Names and values in turn; Node also takes pairs. */
const isList = (head: string | Given | undefined): head is string[] =>
  Array.isArray(head) && head.every(part => typeof part === 'string')

/** The added fields that the head does not set itself. */
function missingIn(head: readonly string[], added: readonly string[]): string[] {
  const names = new Set<string>()
  for (let at = 0; at < head.length; at += 2) names.add((head[at] as string).toLowerCase())
  return added.filter((_, index) => !names.has((added[index & ~1] as string).toLowerCase()))
}

function setAll(res: ServerResponse, added: readonly string[]): void {
  const before = new Set(res.getHeaderNames())
  for (let at = 0; at < added.length; at += 2) {
    const [name, value] = [added[at] as string, added[at + 1] as string]
    if (!before.has(name.toLowerCase())) res.appendHeader(name, value)
  }
}

/** Fields that were added to responses of other servers. */
const addedTo = new WeakMap<ServerResponse, Set<string>>()

function addForeign(res: ServerResponse, name: string, value: string): void {
  const added = addedTo.get(res) ?? new Set()
  if (res.hasHeader(name) && !added.has(name)) return
  res.appendHeader(name, value)
  addedTo.set(res, added.add(name))
}

/** Adds a header field, or a further value, before the head is written. A field of this name that is set takes precedence. */
export function addField(res: ServerResponse, name: string, value: string): void {
  if (res instanceof HostResponse) res.add(name, value)
  else addForeign(res, name, value)
}

/** Media types that are accepted by name. */
const acceptedTypes = (accept: string): string[] =>
  accept.split(',').flatMap(range => {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    return parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [type]
  })

/** A GET or HEAD that accepts HTML and no event stream. */
function isVisit({ method, headers: { accept = '' } }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const types = acceptedTypes(accept)
  return types.includes('text/html') && !types.includes('text/event-stream')
}

/** Errors that a browser does not get, because it gets the page. */
const SHOWN_INSTEAD: ReadonlySet<HostErrorKind> = new Set([
  'unauthorized',
  'methodNotAllowed',
  'notAcceptable',
  // Browsers also accept `*/*`, and so streams.
  'sessionIdMissing',
])

interface Answering {
  readonly req: IncomingMessage
  status: number
  vary(field: string): void
  remove(field: string): void
}

/** Whether to respond with the page instead of the error. The status is then 200, except for 401. */
export function isShownInstead(ctx: Answering, kind: HostErrorKind | undefined): boolean {
  if (ctx.req.method === 'GET' || ctx.req.method === 'HEAD') ctx.vary('Accept')
  if (!isVisit(ctx.req) || kind === undefined || !SHOWN_INSTEAD.has(kind)) return false
  if (ctx.status !== 401) {
    ctx.status = 200
    ctx.remove('Allow')
  }
  return true
}

/** Headers of a page without scripts, forms and frames. `style`: the hash of its style sheet. */
export const pageHeaders = (style: string): Readonly<Record<string, string>> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src '${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
})
