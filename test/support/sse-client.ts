// A client of the HTTP+SSE transport (2024-11-05) over raw HTTP: reads the stream event by event and sends messages by POST.
import type { RpcMessage } from './rpc.ts'
import { initializeMessage, nextMessage, postMessage, type WholeAnswer } from './session-client.ts'
import { exchange, type StreamExchange } from './stream-exchange.ts'

export interface SseClient {
  readonly stream: StreamExchange
  /** The data of the `endpoint` event. */
  readonly endpoint: string
  readonly sessionId: string
  /** POSTs a message or raw text to the endpoint. */
  post(message: unknown, headers?: Readonly<Record<string, string>>): Promise<WholeAnswer>
  /** Sends a request and reads the stream up to its response. */
  request(method: string, params?: object): Promise<RpcMessage>
  /** The next message of the stream. */
  next(): Promise<RpcMessage>
}

export interface SseSettings {
  readonly headers?: Readonly<Record<string, string>>
  readonly localAddress?: string
}

/** GET <route>/sse. */
export const openSse = (url: string, { headers, localAddress }: SseSettings = {}): Promise<StreamExchange> =>
  exchange(`${url.replace(/\/$/, '')}/sse`, {
    headers: { Accept: 'text/event-stream', ...headers },
    ...(localAddress !== undefined && { localAddress }),
  })

let lastId = 0

/** Opens a stream and reads its `endpoint` event, without initialize. */
export async function connectSse(url: string, settings: SseSettings = {}): Promise<SseClient> {
  const stream = await openSse(url, settings)
  const first = await stream.next()
  if (first?.event !== 'endpoint') throw new Error(`GET /sse was answered ${stream.status}, ${JSON.stringify(first)}`)
  const endpoint = String(first.data)
  const target = new URL(endpoint, `${url.replace(/\/$/, '')}/sse`)
  const post: SseClient['post'] = (message, headers) =>
    postMessage(target.href, message, { ...settings.headers, ...headers })
  return {
    stream,
    endpoint,
    sessionId: target.searchParams.get('sessionId') ?? '',
    post,
    async request(method, params = {}) {
      const id = `request ${++lastId}`
      await post({ id, method, params })
      for (let message = await nextMessage(stream); message; message = await nextMessage(stream)) {
        if (message.id === id && message.method === undefined) return message
      }
      throw new Error(`the stream ended before ${method} was answered`)
    },
    next: () => nextMessage(stream),
  }
}

/** Opens a session with its handshake. */
export async function openSseSession(
  url: string,
  {
    revision = '2024-11-05',
    capabilities = {},
    ...settings
  }: SseSettings & { revision?: string; capabilities?: object } = {},
): Promise<SseClient> {
  const client = await connectSse(url, settings)
  await client.request('initialize', initializeMessage({ revision, capabilities }).params)
  await client.post({ method: 'notifications/initialized' })
  return client
}
