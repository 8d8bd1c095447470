// Requests of the translation's own through the relay, under ids that no client has, and their answers.
import { Failure, type Fields, type Id, settleIn } from '../messages.ts'

export interface Sent {
  readonly id: Id
  /** The whole answer: a result or an error. Rejects with a Failure for a request that is too large. */
  readonly answer: Promise<Fields>
  /** Nobody waits for the answer: the relay closes its response, which tells the server. */
  cancel(reason: string): void
}

export interface Port {
  request(method: string, params: Fields): Sent
  /** True for an answer that somebody here waited for. */
  settle(message: Fields): boolean
}

/** `write` takes one message; `most`: bytes of one. */
export function createPort(write: (text: string) => void, most: number): Port {
  const waiting = new Map<Id, (answer: Fields) => void>()
  let count = 0

  return {
    request(method, params) {
      const id = `mcp-host-proxy-${++count}`
      const text = JSON.stringify({ jsonrpc: '2.0', id, method, params })
      if (Buffer.byteLength(text) > most) {
        const answer = Promise.reject(new Failure('too large', `a request has at most ${most} bytes`))
        return { id, answer, cancel: () => undefined }
      }
      const answer = new Promise<Fields>(resolve => waiting.set(id, resolve))
      write(text)
      return {
        id,
        answer,
        cancel(reason) {
          if (!waiting.delete(id)) return
          const cancelled = { method: 'notifications/cancelled', params: { requestId: id, reason } }
          write(JSON.stringify({ jsonrpc: '2.0', ...cancelled }))
        },
      }
    },
    settle: message => settleIn(waiting, message),
  }
}

/** An error answer as what the client is told. */
export function failureOf({ code, message, data }: Fields): Failure {
  const text = typeof message === 'string' ? message : 'the server answered an error'
  const failure = new Failure('refused', text, { code: typeof code === 'number' ? code : -32_000 })
  return Object.assign(failure, { data: data as Fields })
}
