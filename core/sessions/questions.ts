// What this node asked a session's client, until it is answered, withdrawn, or too late.

import type { Clock } from '../http/clock.ts'
import { isError } from '../http/describe-thrown.ts'
import { shown } from '../mcp/client-limits.ts'
import { isObject } from '../mcp/is-object.ts'
import { encodeNotification } from '../mcp/message.ts'
import type { RequestId } from '../mcp/protocol.ts'
import { ToolError } from '../mcp/tool-error.ts'

/** How long a client may take to answer a question, milliseconds; the same as a sealed `requestState` lives. */
export const ANSWER_TIMEOUT = 600_000

interface Question {
  readonly resolve: (result: unknown) => void
  readonly reject: (reason: Error) => void
}

/** A question as it is asked. */
export interface Asking {
  /** How it reaches the client. */
  readonly send: (message: string) => void
  readonly method: string
  readonly params: object
  readonly signal: AbortSignal
}

const errorMessage = (error: unknown): string =>
  isObject(error) && typeof error['message'] === 'string' ? shown(error['message']) : 'an error'

export class Questions {
  readonly #open = new Map<RequestId, Question>()
  readonly #nextId: () => string
  readonly #clock: Clock

  /** `nextId`: gives each an id. */
  constructor(nextId: () => string, clock: Clock) {
    this.#nextId = nextId
    this.#clock = clock
  }

  has(id: RequestId): boolean {
    return this.#open.has(id)
  }

  /**
   * Rejects with a ToolError when the client answers an error or nothing in ten minutes, with the signal's reason when
   * that aborts, and when all are rejected.
   */
  ask({ send, method, params, signal }: Asking): Promise<unknown> {
    const id = this.#nextId()
    return new Promise((resolve, reject) => {
      const withdraw = (reason: Error) => {
        this.#open.get(id)?.reject(reason)
        send(encodeNotification('notifications/cancelled', { requestId: id, reason: reason.message }))
      }
      const onAbort = () => withdraw(isError(signal.reason) ? signal.reason : new Error('cancelled'))
      const tooLate = () => withdraw(new ToolError('the client did not answer in time'))
      const timer = this.#clock.setTimeout(tooLate, ANSWER_TIMEOUT)
      const end = () => {
        this.#clock.clear(timer)
        signal.removeEventListener('abort', onAbort)
        this.#open.delete(id)
      }
      this.#open.set(id, {
        resolve: result => {
          end()
          resolve(result)
        },
        reject: reason => {
          end()
          reject(reason)
        },
      })
      if (signal.aborted) return onAbort()
      signal.addEventListener('abort', onAbort, { once: true })
      send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    })
  }

  /** One that nobody waits for is ignored. */
  answer(id: RequestId, body: Readonly<Record<string, unknown>>): void {
    const question = this.#open.get(id)
    const { error, result } = body
    if (error === undefined || error === null) question?.resolve(result)
    else question?.reject(new ToolError(`the client answered: ${errorMessage(error)}`))
  }

  rejectAll(reason: Error): void {
    for (const question of [...this.#open.values()]) question.reject(reason)
  }
}
