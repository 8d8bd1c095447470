// From the text of a body to JSON-RPC messages: the one reader, for every transport.

import { HostError } from '../http/errors.ts'
import { parseJson } from '../http/json-body.ts'
import { isShortName, MAX_BATCH, MAX_ID } from './client-limits.ts'
import { isObject } from './is-object.ts'
import type { RequestId } from './protocol.ts'
import { isRevision, REVISIONS, rulesOf } from './revisions.ts'
import { paramsWithoutNulls } from './without-nulls.ts'

/** A JSON-RPC message as it was read. */
export type Message =
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly params: Params }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Params }
  | { readonly kind: 'response'; readonly id: RequestId; readonly body: Params }
  /** Not a message; `id` is there where it could be read. */
  | { readonly kind: 'invalid'; readonly id: RequestId | undefined; readonly error: HostError }

/** One that can be served. */
export type ValidMessage = Exclude<Message, { kind: 'invalid' }>

type Params = Readonly<Record<string, unknown>>

const NO_PARAMS: Params = Object.freeze({})

/** False for a progress token that would be too much to repeat; one of another type is none. */
function isTokenShort({ _meta: meta }: Params): boolean {
  const token = isObject(meta) ? meta['progressToken'] : undefined
  return typeof token !== 'string' || isShortName(token)
}

function toMessage(value: unknown): Message {
  const id = isObject(value) && isShortName(value['id']) ? value['id'] : undefined
  const invalid = (detail: string): Message => ({
    kind: 'invalid',
    id,
    error: new HostError('invalidRequest', { detail }),
  })
  if (!isObject(value)) return invalid('a message is an object')
  const { jsonrpc, method, params } = value
  if (jsonrpc !== '2.0') return invalid('`jsonrpc` must be "2.0"')
  const hasId = Object.hasOwn(value, 'id')
  if (hasId && id === undefined) return invalid(`\`id\` must be an integer, or a string of at most ${MAX_ID} bytes`)
  if (method === undefined && id !== undefined && (Object.hasOwn(value, 'result') || isObject(value['error']))) {
    return { kind: 'response', id, body: value }
  }
  if (typeof method !== 'string') return invalid('`method` must be a string')
  if (params !== undefined && params !== null && !isObject(params)) return invalid('`params` must be an object')
  const known = params ? paramsWithoutNulls(params) : NO_PARAMS
  if (!isTokenShort(known)) {
    const error = new HostError('invalidMeta', { detail: `progressToken has at most ${MAX_ID} bytes` })
    return { kind: 'invalid', id, error }
  }
  return id === undefined
    ? { kind: 'notification', method, params: known }
    : { kind: 'request', id, method, params: known }
}

/**
 * Reads one message or a batch. Throws `parseError` for what is not JSON, and `invalidRequest` for an empty body, a
 * batch of none or of more than 50, nesting deeper than 128 levels, more objects and lists than data has (core/http/limits.ts), and
 * `__proto__` or `constructor.prototype` keys.
 */
export function readMessages(text: string): Message | readonly Message[] {
  const value = parseJson(text)
  if (!Array.isArray(value)) return toMessage(value)
  if (value.length === 0) throw new HostError('invalidRequest', { detail: 'the batch is empty' })
  if (value.length > MAX_BATCH)
    throw new HostError('invalidRequest', { detail: `a batch has at most ${MAX_BATCH} entries` })
  return value.map(toMessage)
}

const BATCH_REVISIONS = REVISIONS.filter(revision => rulesOf(revision).batches).join(', ')

/** Throws `invalidRequest` where a revision has no batches. Undefined: none is negotiated yet. */
export function demandBatches(revision: unknown): void {
  if (isRevision(revision) && rulesOf(revision).batches) return
  const hint = isRevision(revision) ? `revision ${revision} has no batches, ` : ''
  throw new HostError('invalidRequest', { detail: `${hint}only revision ${BATCH_REVISIONS} has batches` })
}

/** The messages of a batch. Throws `invalidRequest` where one is none, or opens a session. */
export function validBatch(messages: readonly Message[]): readonly ValidMessage[] {
  return messages.map(message => {
    if (message.kind === 'invalid') throw message.error
    if (message.kind === 'request' && message.method === 'initialize') {
      throw new HostError('invalidRequest', { detail: 'initialize cannot be part of a batch' })
    }
    return message
  })
}

/** A result whose JSON is already written, once for many answers. */
export class SerializedResult {
  readonly json: string
  #bytes: Buffer | undefined

  constructor(json: string) {
    this.json = json
  }
  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(this.json)
    return this.#bytes
  }
}

/** An answer with such a result: a text, and bytes for those who want them, copied together and not encoded again. */
export class SerializedAnswer {
  readonly #head: string
  readonly #result: SerializedResult
  #bytes: Buffer | undefined

  /** `head`: what is written before the result. */
  constructor(head: string, result: SerializedResult) {
    this.#head = head
    this.#result = result
  }
  toString(): string {
    return `${this.#head}${this.#result.json}}`
  }
  get bytes(): Buffer {
    this.#bytes ??= Buffer.concat([Buffer.from(this.#head), this.#result.bytes, END])
    return this.#bytes
  }
}

const END = Buffer.from('}')

/** An answer as it is written: `String(answer)` is its JSON. */
export type EncodedAnswer = string | SerializedAnswer

/** Whom an error answers. */
export interface ErrorTarget {
  readonly id?: RequestId | undefined
  /** Undefined: unknown. */
  readonly revision?: string | undefined
}

/** An error answer. Its text never comes from anything but a HostError. */
export function encodeError(error: HostError, { id, revision }: ErrorTarget = {}): string {
  const rules = isRevision(revision) ? rulesOf(revision) : undefined
  const code = error.kind === 'resourceNotFound' && rules ? rules.resourceNotFoundCode : error.code
  const body = {
    jsonrpc: '2.0',
    ...(id !== undefined ? { id } : rules?.nullErrorIds ? { id: null } : {}),
    error: { code, message: error.message, ...(error.data !== undefined && { data: error.data }) },
  }
  return JSON.stringify(body)
}

/** A notification to the client. */
export const encodeNotification = (method: string, params: Record<string, unknown>): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params })
