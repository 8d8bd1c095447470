// The response of a host's own server: header fields that many plugins add to each answer are kept as a list and written with
// the head, which costs a fraction of what `setHeader` does, as that makes Node build and check all of them one by one.
import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { HostErrorKind } from './errors.ts'

type Given = OutgoingHttpHeaders | OutgoingHttpHeader[]

export class HostResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Names and values, one after the other. */
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

/** Names and values in turn; Node takes pairs, too. */
const isList = (head: string | Given | undefined): head is string[] =>
  Array.isArray(head) && head.every(part => typeof part === 'string')

/** What is added and not there: what the head says of a field is all that is said of it. */
function missingIn(head: readonly string[], added: readonly string[]): string[] {
  const names = new Set<string>()
  for (let at = 0; at < head.length; at += 2) names.add((head[at] as string).toLowerCase())
  return added.filter((_, index) => !names.has((added[index & ~1] as string).toLowerCase()))
}

/** A field that was set already says all that is to be said. */
function setAll(res: ServerResponse, added: readonly string[]): void {
  const before = new Set(res.getHeaderNames())
  for (let at = 0; at < added.length; at += 2) {
    const [name, value] = [added[at] as string, added[at + 1] as string]
    if (!before.has(name.toLowerCase())) res.appendHeader(name, value)
  }
}

/** Fields that were added to responses of somebody else's server. */
const addedTo = new WeakMap<ServerResponse, Set<string>>()

function addForeign(res: ServerResponse, name: string, value: string): void {
  const added = addedTo.get(res) ?? new Set()
  if (res.hasHeader(name) && !added.has(name)) return
  res.appendHeader(name, value)
  addedTo.set(res, added.add(name))
}

/**
 * Adds a header field to an answer that has not begun: one line more where it was added before, as to a list. It is not among
 * `getHeaders` before the head is written, and one of its name that is set counts instead.
 */
export function addField(res: ServerResponse, name: string, value: string): void {
  if (res instanceof HostResponse) res.add(name, value)
  else addForeign(res, name, value)
}

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
