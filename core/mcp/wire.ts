// JSON-RPC on the wire: answers, errors and notifications as text. The one place where a message becomes a string.

import { HostError } from '../kernel/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { Call } from './call.ts'
import { META, type RequestId } from './protocol.ts'
import { isRevision, rulesOf } from './revisions.ts'

/** A result whose JSON is already written. */
export class SerializedResult {
  readonly json: string
  constructor(json: string) {
    this.json = json
  }
}

/** Throws a TypeError for a result that JSON cannot hold. */
function encodeResult(call: Call, result: object): string {
  const id = JSON.stringify(call.id)
  if (result instanceof SerializedResult) return `{"jsonrpc":"2.0","id":${id},"result":${result.json}}`
  return `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(call.modern ? modernResult(call, result) : result)}}`
}

/** The answer to a Call. What JSON cannot hold is a failure of its handler, as a throw is: logged, told as `internal`. */
export function encodeAnswer({ log }: { readonly log: Logger }, call: Call, result: object): string {
  try {
    return encodeResult(call, result)
  } catch (err) {
    log.error({ err, method: call.method, route: call.session.route.path }, 'a result cannot be written as JSON')
    throw new HostError('internal', { cause: err }).within200()
  }
}

/** The values of `resultType` that the protocol itself has (2026-07-28 basic, "ResultType"). */
export const RESULT_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required'])

/** A result's type, where it is not complete. */
interface ResultType {
  readonly name: string
  /** Throws where a call must not be answered with it. */
  readonly check?: (call: Call) => void
}

/** On a result: its type. Only the host and extensions can put it there, never a handler's own object. */
export const RESULT_TYPE = Symbol('result type')

/** What a result that is not complete is; undefined for everything else. */
export const resultTypeOf = (value: unknown): ResultType | undefined =>
  typeof value === 'object' && value !== null ? (value as { [RESULT_TYPE]?: ResultType })[RESULT_TYPE] : undefined

/** True for a result that travels as it is: no handler's value, to be made one. */
export const isTyped = (value: unknown): value is object => resultTypeOf(value) !== undefined

/** What 2026-07-28 wants on every result (basic, "ResultType" and "Per-response protocol fields"). */
function modernResult({ view }: Call, result: object): object {
  const { _meta, resultType: _, ...rest } = result as { _meta?: object; resultType?: string }
  return {
    resultType: resultTypeOf(result)?.name ?? 'complete',
    ...rest,
    _meta: { ..._meta, [META.serverInfo]: view.serverInfo },
  }
}

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
