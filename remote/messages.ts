// JSON-RPC messages, and exchanges: a message to the server with the responses that it waits for.

import { Cancellation } from '../core/mcp/wire/cancellation.ts'
import { isObject } from '../core/mcp/wire/message.ts'

export type Id = string | number
export type Fields = Readonly<Record<string, unknown>>

export interface Request {
  readonly id: Id
  readonly method: string
  readonly params: Fields
}

export type OutgoingNotification = Omit<Request, 'id'>

export interface Outgoing {
  readonly text: string
  readonly requests: readonly Request[]
  /** Undefined for a batch, and for a response to a request of the server. */
  readonly notification: OutgoingNotification | undefined
}

export const isId = (id: unknown): id is Id => typeof id === 'string' || typeof id === 'number'

export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isMessage = (value: unknown): value is Fields => isObject(value) && value['jsonrpc'] === '2.0'

export function readMessages(text: string): readonly Fields[] {
  const parsed = parse(text)
  return (Array.isArray(parsed) ? parsed : [parsed]).filter(isMessage)
}

export const responseId = ({ id, method, result, error }: Fields): Id | undefined =>
  isId(id) && method === undefined && (result !== undefined || error !== undefined) ? id : undefined

export function readResult(text: string): Fields | undefined {
  const message = parse(text)
  const result = isObject(message) ? message['result'] : undefined
  return isObject(result) ? result : undefined
}

/** Maximum levels of a result of a call, of params, and of the data of an error. Clients fail on deeper ones. */
export const MAX_LEVELS = 64

export const isTooDeep = (value: unknown, max = MAX_LEVELS): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (max < 0 || Object.values(value).some(one => typeof one === 'object' && isTooDeep(one, max - 1)))

/** Maximum size of a message. */
export const MAX_MESSAGE = 64 * 1_024 * 1_024

interface ExchangeOptions {
  readonly version?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly limit?: number | undefined
}

/**
 * Objects of pending calls are instances of classes: V8 can allocate object literals that survive in the old
 * generation, where ended calls stay in memory until a full garbage collection.
 */
export class Exchange {
  readonly message: Outgoing
  readonly open: Map<Id, Request>
  /** The protocol version that the request contains; undefined for versions with a handshake. */
  readonly version: string | undefined
  readonly cancellation = new Cancellation()
  /** Additional headers. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Maximum size of a message of the response, bytes. */
  readonly limit: number

  constructor(out: Outgoing, { version, headers, limit = MAX_MESSAGE }: ExchangeOptions = {}) {
    this.message = out
    this.open = new Map(out.requests.map(request => [request.id, request]))
    this.version = version
    this.headers = headers
    this.limit = limit
  }

  /** Gives up a request. */
  abandon(id: Id, reason: string): void {
    if (this.open.delete(id) && this.open.size === 0) this.cancellation.abort(new Error(reason))
  }
}

/** Idempotent methods, sent again after an unknown outcome. */
const IDEMPOTENT_METHODS: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'server/discover',
  'completion/complete',
  'prompts/list',
  'prompts/get',
  'tools/list',
  'resources/read',
  'resources/list',
  'resources/templates/list',
  'resources/subscribe',
  'resources/unsubscribe',
  'logging/setLevel',
])

export const isIdempotent = ({ message: out }: Exchange): boolean =>
  out.requests.length === 0
    ? out.notification !== undefined
    : out.requests.every(({ method }) => IDEMPOTENT_METHODS.has(method))
