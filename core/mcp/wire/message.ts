// Parses and encodes JSON-RPC messages for every transport.

import './error-kinds.ts'
import { HostError } from '../../http/errors.ts'
import { parseJson } from '../../http/json-body.ts'
import { fits, MAX_BATCH, MAX_ID } from '../client-limits.ts'
import type { RequestId } from './protocol.ts'
import { isRevision, REVISIONS, rulesOf } from './revisions.ts'

/** True for a JSON object, not for arrays and null. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The error for requests of a node that stopped before its response. */
export const nodeLost = (): HostError => new HostError('nodeLost', { data: { reason: 'node-lost', retryable: true } })

export type Message =
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly params: Params }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Params }
  | { readonly kind: 'response'; readonly id: RequestId; readonly body: Params }
  /** `id` is set if it could be read. */
  | { readonly kind: 'invalid'; readonly id: RequestId | undefined; readonly error: HostError }

export type ValidMessage = Exclude<Message, { kind: 'invalid' }>

type Params = Readonly<Record<string, unknown>>

/** An id or progress token of a client. */
export const isShortName = (value: unknown): value is string | number =>
  typeof value === 'string' ? fits(value, MAX_ID) : Number.isSafeInteger(value)

const NO_PARAMS: Params = Object.freeze({})

/** Optional params. `null` in a required one stays an error. */
const OPTIONAL: ReadonlySet<string> = new Set([
  ...['_meta', 'arguments', 'context', 'cursor', 'inputResponses', 'reason', 'requestState', 'task'],
])
/** Params without members where `null` is a value. */
const DEEP: ReadonlySet<string> = new Set(['_meta', 'capabilities', 'clientInfo', 'context', 'notifications', 'task'])

/** Removes optional `null` members, because some clients write all members. `isMember`: `fields` is itself a member. */
function prune(fields: Params, isMember: boolean): Params {
  let copy: Record<string, unknown> | undefined
  for (const name in fields) {
    const value = fields[name]
    if (value === null) {
      if (!isMember && !OPTIONAL.has(name)) continue
      copy ??= { ...fields }
      delete copy[name]
    } else if (isObject(value) && (isMember || DEEP.has(name))) {
      const pruned = prune(value, true)
      if (pruned === value) continue
      copy ??= { ...fields }
      copy[name] = pruned
    }
  }
  return copy ?? fields
}

export const withoutNulls = (fields: Params): Params =>
  Object.values(fields).includes(null)
    ? Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
    : fields

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
  const known = params ? prune(params, false) : NO_PARAMS
  const meta = known['_meta']
  const token = isObject(meta) ? meta['progressToken'] : undefined
  if (typeof token === 'string' && !isShortName(token)) {
    const error = new HostError('invalidMeta', { detail: `progressToken has at most ${MAX_ID} bytes` })
    return { kind: 'invalid', id, error }
  }
  return id === undefined
    ? { kind: 'notification', method, params: known }
    : { kind: 'request', id, method, params: known }
}

export function readMessages(text: string, what?: string): Message | readonly Message[] {
  const value = parseJson(text, what)
  if (!Array.isArray(value)) return toMessage(value)
  if (value.length === 0) throw new HostError('invalidRequest', { detail: 'the batch is empty' })
  if (value.length > MAX_BATCH)
    throw new HostError('invalidRequest', { detail: `a batch has at most ${MAX_BATCH} entries` })
  return value.map(toMessage)
}

const BATCH_REVISIONS = REVISIONS.filter(revision => rulesOf(revision).batches).join(', ')

/** Throws `invalidRequest` for versions without batches. */
export function requireBatches(revision: unknown): void {
  if (isRevision(revision) && rulesOf(revision).batches) return
  const hint = isRevision(revision) ? `protocol version ${revision} has no batches, ` : ''
  throw new HostError('invalidRequest', { detail: `${hint}only protocol version ${BATCH_REVISIONS} has batches` })
}

/** Throws `invalidRequest` for an invalid message or an `initialize`. */
export function validBatch(messages: readonly Message[]): readonly ValidMessage[] {
  return messages.map(message => {
    if (message.kind === 'invalid') throw message.error
    if (message.kind === 'request' && message.method === 'initialize') {
      throw new HostError('invalidRequest', { detail: 'initialize cannot be part of a batch' })
    }
    return message
  })
}

/** Only the host and extensions can set this key. */
export const RESULT_TYPE = Symbol('result type')

export interface TypedResult {
  readonly [RESULT_TYPE]: object
}

/** Standard `resultType` values (2026-07-28 basic, "ResultType"). */
export const RESULT_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required'])

interface ResultType {
  readonly name: string
  check?(call: object): void
}

export const resultTypeOf = (value: unknown): ResultType | undefined =>
  typeof value === 'object' && value !== null ? (value as { [RESULT_TYPE]?: ResultType })[RESULT_TYPE] : undefined

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

/** Copies the shared bytes of the result instead of encoding them again. */
export class SerializedResponse {
  readonly #head: string
  readonly #result: SerializedResult
  #bytes: Buffer | undefined

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

/** An encoded response. `String(answer)` is its JSON. */
export type EncodedResponse = string | SerializedResponse

interface ErrorTarget {
  readonly id?: RequestId | undefined
  readonly revision?: string | undefined
}

/** Encodes an error response. Its text comes from a HostError only. Data without a JSON form becomes an internal error. */
export function encodeError(error: HostError, target: ErrorTarget = {}): string {
  const { id, revision } = target
  const rules = isRevision(revision) ? rulesOf(revision) : undefined
  const code = error.kind === 'resourceNotFound' && rules ? rules.resourceNotFoundCode : error.code
  const body = {
    jsonrpc: '2.0',
    ...(id !== undefined ? { id } : rules?.nullErrorIds ? { id: null } : {}),
    error: { code, message: error.message, ...(error.data !== undefined && { data: error.data }) },
  }
  try {
    return JSON.stringify(body)
  } catch {
    return encodeError(new HostError('internal'), target)
  }
}

export const encodeNotification = (method: string, params: Record<string, unknown>): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params })
