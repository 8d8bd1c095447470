// JSON-RPC on the wire: errors and notifications as text; answers are encode-answer.ts's. Nowhere else a message becomes a
// string.

import type { HostError } from '../http/errors.ts'
import type { RequestId } from './protocol.ts'
import { isRevision, rulesOf } from './revisions.ts'

/** A result whose JSON is already written. */
export class SerializedResult {
  readonly json: string
  constructor(json: string) {
    this.json = json
  }
}

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
