// Requests of this node to a session's client (elicitation, sampling, roots), and their ids.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../http/clock.ts'
import { isError } from '../http/describe-thrown.ts'
import type { ClientRequest } from '../mcp/calls/call.ts'
import { shown } from '../mcp/client-limits.ts'
import { ToolError } from '../mcp/definitions/tool-error.ts'
import { encodeNotification, isObject } from '../mcp/wire/message.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'

/** Request timeout and `requestState` lifetime, milliseconds. */
const RESPONSE_TIMEOUT = 600_000

const errorMessage = (error: unknown): string =>
  isObject(error) && typeof error['message'] === 'string' ? shown(error['message']) : 'an error'

export class PendingRequests {
  readonly #open = new Map<RequestId, { resolve: (result: unknown) => void; reject: (reason: Error) => void }>()
  readonly #nextId: () => string
  readonly #clock: Clock

  constructor(nextId: () => string, clock: Clock) {
    this.#nextId = nextId
    this.#clock = clock
  }

  /** Rejects with a ToolError on an error response or timeout, and with the signal's reason on abort. */
  send({ send, method, params, signal }: ClientRequest): Promise<unknown> {
    const id = this.#nextId()
    return new Promise((resolve, reject) => {
      const cancel = (reason: Error) => {
        this.#open.get(id)?.reject(reason)
        send(encodeNotification('notifications/cancelled', { requestId: id, reason: reason.message }))
      }
      const onAbort = () => cancel(isError(signal.reason) ? signal.reason : new Error('cancelled'))
      const onTimeout = () => cancel(new ToolError('the client did not respond in time'))
      const timer = this.#clock.setTimeout(onTimeout, RESPONSE_TIMEOUT)
      const withCleanup =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          this.#clock.clear(timer)
          signal.removeEventListener('abort', onAbort)
          this.#open.delete(id)
          settle(value)
        }
      this.#open.set(id, { resolve: withCleanup(resolve), reject: withCleanup(reject) })
      if (signal.aborted) return onAbort()
      signal.addEventListener('abort', onAbort, { once: true })
      send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    })
  }

  settle(id: RequestId, { error, result }: Readonly<Record<string, unknown>>): boolean {
    const pending = this.#open.get(id)
    if (error === undefined || error === null) pending?.resolve(result)
    else pending?.reject(new ToolError(`the client returned an error: ${errorMessage(error)}`))
    return pending !== undefined
  }

  rejectAll(reason: Error): void {
    for (const pending of [...this.#open.values()]) pending.reject(reason)
  }
}

/** Signed ids that contain the requesting node, so that any node can forward the response. */
export interface SessionRequestIds {
  series(session: string): () => string
  senderOf(session: string, id: unknown): string | undefined
}

/** Base64url characters of 16 bytes. */
const MAC_LENGTH = 22
const FORM = /^(ask-([0-9a-z]{1,64})-[0-9a-z]{1,8}-[1-9][0-9]{0,9})-([\w-]{22})$/

const macOf = (key: Buffer, session: string, text: string) =>
  createHmac('sha256', key).update(`${session} ${text}`).digest('base64url').slice(0, MAC_LENGTH)

/** The first key signs; all keys verify. */
export function createRequestIdSeries(keys: readonly Buffer[], node: string): SessionRequestIds {
  const [signing] = keys
  if (!signing) throw new Error('no key to sign request ids')
  return {
    series(session) {
      const prefix = `ask-${node}-${Math.random().toString(36).slice(2, 8)}`
      let count = 0
      return () => {
        const text = `${prefix}-${++count}`
        return `${text}-${macOf(signing, session, text)}`
      }
    },
    senderOf(session, id) {
      const [, text = '', sender, mac = ''] = (typeof id === 'string' && FORM.exec(id)) || []
      if (sender === undefined) return undefined
      // Compares encoded text, so each id has one encoding.
      const received = Buffer.from(mac)
      return keys.some(key => timingSafeEqual(Buffer.from(macOf(key, session, text)), received)) ? sender : undefined
    },
  }
}
