// A client for each protocol version and transport; every request can present a different token.
import { META } from '../../../core/transport.ts'
import { TASKS } from '../../plugins/tasks/support/task-client.ts'
import { as } from '../../plugins/tool-policy/bearer-json.ts'
import { legacy, modern, type RpcAnswer, type RpcMessage } from '../../support/rpc.ts'
import {
  initialize,
  nextMessage,
  openSession,
  type SessionClient,
  type WholeAnswer,
} from '../../support/session-client.ts'
import { openSse, openSseSession, type SseClient } from '../../support/sse-client.ts'
import type { Caller, GeneratedConfig } from './generated-config.ts'

export interface Answer {
  /** Undefined in batches and over HTTP+SSE. */
  readonly status?: number
  readonly challenge?: string | undefined
  readonly message: RpcMessage
}

export interface Client {
  readonly name: string
  readonly era: 'modern' | 'legacy'
  /** Declares the tasks extension. */
  readonly knowsTasks: boolean
  request(caller: Caller, method: string, params?: Record<string, unknown>, headers?: object): Promise<Answer>
  close(): Promise<unknown> | undefined
}

export const headersOf = ({ user, header }: Caller) => ({ ...as(user), ...(header && { 'X-More': 'yes' }) })

const answerOf = ({ status, headers, message }: RpcAnswer | WholeAnswer): Answer => {
  const challenge = headers instanceof Headers ? headers.get('www-authenticate') : headers['www-authenticate']
  return { status, challenge: challenge ?? undefined, message }
}

/** 2026-07-28, with or without tasks. */
const perRequest = (url: string, knowsTasks: boolean): Client => ({
  name: knowsTasks ? '2026-07-28 with tasks' : '2026-07-28',
  era: 'modern',
  knowsTasks,
  async request(caller, method, params, headers) {
    const meta = { [META.clientCapabilities]: knowsTasks ? { extensions: { [TASKS]: {} } } : {} }
    return answerOf(await modern(url, method, params, { meta, headers: { ...headersOf(caller), ...headers } }))
  },
  close: () => undefined,
})

/** A handshake version on a stateless route. */
const stateless = (url: string, revision: string): Client => ({
  name: `${revision} without a session`,
  era: 'legacy',
  knowsTasks: false,
  async request(caller, method, params) {
    return answerOf(await legacy(url, method, params, { revision, headers: headersOf(caller) }))
  },
  close: () => undefined,
})

/** A session, opened with the first token that is allowed to, then used with the others. */
function inSession(url: string, revision: string, inBatches: boolean): Client {
  let session: SessionClient | undefined
  return {
    name: `a session of ${revision}${inBatches ? ', in batches' : ''}`,
    era: 'legacy',
    knowsTasks: false,
    async request(caller, method, params = {}) {
      const headers = headersOf(caller)
      if (!session) {
        const opened = await initialize(url, { revision, headers })
        if (opened.status !== 200) return answerOf(opened)
        session = await openSession(url, { revision, headers })
      }
      if (!inBatches) return answerOf(await session.request(method, params, { headers }))
      const ping = { jsonrpc: '2.0', id: 'ping', method: 'ping' }
      const { status, messages } = await session.send([ping, { jsonrpc: '2.0', id: 'it', method, params }], headers)
      const answers: RpcMessage[] = messages.flat()
      const message = answers.find(({ id }) => id === 'it')
      // A refused batch is one error.
      return message ? { message } : { status, message: answers[0] }
    },
    close: () => session?.end(),
  }
}

/** HTTP+SSE. */
function overSse(url: string): Client {
  let sse: SseClient | undefined
  let sent = 0
  return {
    name: 'HTTP+SSE',
    era: 'legacy',
    knowsTasks: false,
    async request(caller, method, params = {}) {
      const headers = headersOf(caller)
      if (!sse) {
        const stream = await openSse(url, { headers })
        if (stream.status !== 200) return { status: stream.status, message: JSON.parse(await stream.text()) }
        stream.drop()
        sse = await openSseSession(url, { headers })
      }
      const id = `request ${++sent}`
      const posted = await sse.post({ id, method, params }, headers)
      if (posted.status !== 202) return answerOf(posted)
      for (let message = await nextMessage(sse.stream); message; message = await nextMessage(sse.stream)) {
        if (message.id === id) return { message }
      }
      throw new Error(`the stream ended before ${method} was answered`)
    },
    close() {
      sse?.stream.drop()
      return undefined
    },
  }
}

/** All clients that the route of a config serves. */
export function everyClient(url: string, config: GeneratedConfig): readonly Client[] {
  const { revision } = config
  return [
    perRequest(url, false),
    ...(config.tasks ? [perRequest(url, true)] : []),
    ...(config.stateless
      ? [stateless(url, revision)]
      : [
          inSession(url, revision, false),
          ...(revision === '2025-03-26' ? [inSession(url, revision, true)] : []),
          overSse(url),
        ]),
  ]
}
