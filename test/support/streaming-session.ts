// A session over raw HTTP. Its streams are read event by event and can be broken and resumed at any point.

import type { RpcMessage } from './rpc.ts'
import { type ExchangeRequest, exchange, type StreamExchange } from './stream-exchange.ts'

export interface StreamingSession {
  readonly id: string
  readonly url: string
  /** The response to `initialize`. */
  readonly initialized: RpcMessage
  /** POSTs a request; the response is a stream or JSON. */
  request(method: string, params?: object, id?: string | number): Promise<StreamExchange>
  /** Calls a tool and requests progress. */
  call(name: string, args?: object, id?: string | number): Promise<StreamExchange>
  /** POSTs a notification, or a response to the server's request. */
  tell(message: object): Promise<StreamExchange>
  /** Opens or resumes a stream of the session. */
  get(lastEventId?: string, headers?: Readonly<Record<string, string>>): Promise<StreamExchange>
  end(): Promise<StreamExchange>
}

export interface SessionSettings {
  readonly revision?: string
  readonly capabilities?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly localAddress?: string
}

let lastId = 0

export async function openStreamingSession(
  url: string,
  { revision = '2025-11-25', capabilities = {}, headers: extra = {}, localAddress }: SessionSettings = {},
): Promise<StreamingSession> {
  const from = localAddress === undefined ? {} : { localAddress }
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...extra,
  }
  const send = (request: ExchangeRequest) => exchange(url, { ...from, ...request })
  const post = (message: object) =>
    send({ method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) })

  const clientInfo = { name: 'streaming-client', version: '1.0.0' }
  const params = { protocolVersion: revision, capabilities, clientInfo }
  const opened = await post({ id: 'initialize', method: 'initialize', params })
  const text = await opened.text()
  const id = String(opened.headers['mcp-session-id'])
  if (opened.status !== 200) throw new Error(`initialize was answered ${opened.status}: ${text}`)
  headers['Mcp-Session-Id'] = id
  headers['MCP-Protocol-Version'] = revision
  await (await post({ method: 'notifications/initialized' })).whole

  const request: StreamingSession['request'] = (method, params = {}, id = ++lastId) => post({ id, method, params })
  return {
    id,
    url,
    // A slow response is a stream.
    initialized: JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text),
    request,
    call: (name, args = {}, id = ++lastId) =>
      request('tools/call', { name, arguments: args, _meta: { progressToken: `progress ${id}` } }, id),
    tell: post,
    get: (lastEventId, more) =>
      send({
        headers: { ...headers, ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }), ...more },
      }),
    end: () => send({ method: 'DELETE', headers }),
  }
}
