// JSON-RPC on the wire: errors and notifications as text; what answers hold is encode-answer.ts's. Nowhere else a message becomes a
// string.

import type { HostError } from '../http/errors.ts'
import type { RequestId } from './protocol.ts'
import { isRevision, rulesOf } from './revisions.ts'

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
