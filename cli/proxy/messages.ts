// Parses the JSON-RPC messages of the client, and writes errors for it.
import { isObject } from '../../core/mcp/wire/message.ts'
import { META } from '../../core/mcp/wire/protocol.ts'
import { isHandshakeRevision } from '../../core/mcp/wire/revisions.ts'
import { type Fields, type Id, isId, type OutgoingNotification, parse, type Request } from '../../remote/messages.ts'

/** An error response to the client. */
export class Failure extends Error {
  readonly code: number
  readonly data: Fields

  constructor(reason: string, message: string, { code = -32_000, ...more }: Fields & { readonly code?: number } = {}) {
    super(message)
    this.code = code
    this.data = { reason, ...more }
  }
}

const noMessage = (why: string) => new Failure('no message', why, { code: -32_600 })

function toCall(message: unknown): (OutgoingNotification & { readonly id: Id | undefined })[] {
  if (!isObject(message)) throw noMessage('a message is a JSON object')
  const { id, method, params } = message
  if (method === undefined) return []
  if (typeof method !== 'string') throw noMessage('a method is a string')
  // Servers differ in how they handle other id types.
  if ('id' in message && !isId(id)) throw noMessage('the id of a request is a string or a number')
  return [{ id: isId(id) ? id : undefined, method, params: isObject(params) ? params : {} }]
}

export type ClientLine = ReturnType<typeof readOutgoing>

export function readOutgoing(text: string) {
  const parsed = parse(text)
  if (parsed === undefined) throw new Failure('no JSON', 'the line is not JSON', { code: -32_700 })
  const calls = (Array.isArray(parsed) ? parsed : [parsed]).flatMap(toCall)
  const requests = calls.filter((call): call is Request => call.id !== undefined)
  const [notification] = Array.isArray(parsed) || requests.length > 0 ? [] : calls
  return { text, calls, requests, notification }
}

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
