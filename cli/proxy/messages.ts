// Parses JSON-RPC messages for the relay, which keeps their text unchanged.
import { isObject } from '../../core/mcp/is-object.ts'
import { META } from '../../core/mcp/protocol.ts'
import { isHandshakeRevision } from '../../core/mcp/revisions.ts'

export type Id = string | number
export type Fields = Readonly<Record<string, unknown>>

export interface Request {
  readonly id: Id
  readonly method: string
  readonly params: Fields
}

export type Call = Omit<Request, 'id'>

export interface Outgoing {
  readonly text: string
  readonly calls: readonly Call[]
  readonly requests: readonly Request[]
  /** Undefined for a batch and for a response to the server. */
  readonly notification: Call | undefined
}

export class Failure extends Error {
  readonly code: number
  readonly data: Fields

  constructor(reason: string, message: string, { code = -32_000, ...more }: Fields & { readonly code?: number } = {}) {
    super(message)
    this.code = code
    this.data = { reason, ...more }
  }
}

const NO_PARAMS: Fields = Object.freeze({})

const isId = (id: unknown): id is Id => typeof id === 'string' || typeof id === 'number'
const paramsOf = ({ params }: Fields): Fields => (isObject(params) ? params : NO_PARAMS)

export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const noMessage = (why: string) => new Failure('no message', why, { code: -32_600 })

function toCall(message: unknown): (Call & { readonly id: Id | undefined })[] {
  if (!isObject(message)) throw noMessage('a message is a JSON object')
  const { id, method } = message
  if (method === undefined) return []
  if (typeof method !== 'string') throw noMessage('a method is a string')
  // The server's handling of other id types is unknown.
  if ('id' in message && !isId(id)) throw noMessage('the id of a request is a string or a number')
  return [{ id: isId(id) ? id : undefined, method, params: paramsOf(message) }]
}

export function readOutgoing(text: string): Outgoing {
  const parsed = parse(text)
  if (parsed === undefined) throw new Failure('no JSON', 'the line is not JSON', { code: -32_700 })
  const calls = (Array.isArray(parsed) ? parsed : [parsed]).flatMap(toCall)
  const requests = calls.filter((call): call is Request => call.id !== undefined)
  const [notification] = Array.isArray(parsed) || requests.length > 0 ? [] : calls
  return { text, calls, requests, notification }
}

export function readMessages(text: string): readonly Fields[] {
  const parsed = parse(text)
  return (Array.isArray(parsed) ? parsed : [parsed]).filter(isObject).filter(({ jsonrpc }) => jsonrpc === '2.0')
}

export const answeredId = ({ id, method, result, error }: Fields): Id | undefined =>
  isId(id) && method === undefined && (result !== undefined || error !== undefined) ? id : undefined

/** The protocol version that a request contains; undefined for versions with a handshake. */
export function ownVersion({ params }: Pick<Request, 'params'>): string | undefined {
  const meta = params['_meta']
  const version = isObject(meta) ? meta[META.protocolVersion] : undefined
  return typeof version === 'string' && !isHandshakeRevision(version) ? version : undefined
}

/** Removes line breaks, which are white space in JSON. */
export const onOneLine = (text: string): string => text.replace(/[\r\n]+/g, ' ')

export const errorLine = (id: Id | undefined, { code, message, data }: Failure): string =>
  JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), error: { code, message, data } })

export interface Exchange {
  readonly out: Outgoing
  readonly open: Map<Id, Request>
  readonly version: string | undefined
  readonly signal: AbortSignal
  drop(id: Id, reason: string): void
}

export function createExchange(out: Outgoing, version: string | undefined): Exchange {
  const open = new Map(out.requests.map(request => [request.id, request]))
  const end = new AbortController()
  return {
    out,
    open,
    version,
    signal: end.signal,
    drop(id, reason) {
      if (open.delete(id) && open.size === 0) end.abort(new Error(reason))
    },
  }
}

/** Idempotent methods, sent again after an unknown outcome. */
const HARMLESS =
  /^(?:initialize|ping|server\/discover|completion\/complete|prompts\/(?:list|get)|tools\/list|resources\/(?:read|list|templates\/list|subscribe|unsubscribe)|logging\/setLevel)$/

export const isHarmless = ({ out }: Exchange): boolean =>
  out.requests.length === 0 ? out.notification !== undefined : out.requests.every(({ method }) => HARMLESS.test(method))
