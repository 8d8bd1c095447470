// A client of the handshake protocol versions, over raw HTTP: every header and field can be changed, responses are read whole or
// event by event, and calls can come from any loopback address.
import { META } from '../../core/transport.ts'
import { modernRequest, parseEvents, type RpcMessage } from './rpc.ts'
import { type ExchangeRequest, exchange, type StreamExchange } from './stream-exchange.ts'

type Headers = Readonly<Record<string, string | undefined>>

/** A response that was read to its end. */
export interface WholeAnswer {
  readonly status: number
  readonly headers: StreamExchange['headers']
  readonly text: string
  /** Messages of an event stream, or the one JSON body. */
  readonly messages: readonly RpcMessage[]
  /** The last of them. */
  readonly message: RpcMessage
}

export interface SessionSettings {
  readonly revision?: string
  readonly capabilities?: object
  readonly headers?: Headers
  /** The source address, such as `127.0.0.2`. */
  readonly localAddress?: string
}

export interface SessionClient {
  readonly id: string
  readonly url: string
  /** The response to `initialize`. */
  readonly initialized: WholeAnswer
  /** Sends a request and reads the whole response. */
  request(method: string, params?: object, options?: RequestOptions): Promise<WholeAnswer>
  /** Sends a request; the response can be read while it is open. */
  open(method: string, params?: object, options?: RequestOptions): Promise<StreamExchange>
  /** Sends `tools/call`, as `open`, and requests progress. */
  call(name: string, args?: object, options?: RequestOptions): Promise<StreamExchange>
  /** Sends any body: a notification, a response, a batch. */
  send(body: unknown, headers?: Headers): Promise<WholeAnswer>
  get(headers?: Headers): Promise<StreamExchange>
  end(headers?: Headers): Promise<WholeAnswer>
}

export interface RequestOptions {
  readonly id?: string | number
  readonly headers?: Headers
}

const BASE = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }

const present = (headers: Headers) =>
  Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined))

const bodyOf = (message: unknown) =>
  JSON.stringify(Array.isArray(message) ? message : { jsonrpc: '2.0', ...(message as object) })

/** POSTs a message or raw text; resolves when the response headers arrive. */
export const postOpen = (url: string, message: unknown, headers: Headers = {}, from: ExchangeRequest = {}) =>
  exchange(url, {
    ...from,
    method: 'POST',
    headers: present({ ...BASE, ...headers }),
    body: typeof message === 'string' ? message : bodyOf(message),
  })

export async function readWhole(opened: Promise<StreamExchange>): Promise<WholeAnswer> {
  const answer = await opened
  const { status, headers } = answer
  const text = await answer.text()
  const streamed = headers['content-type']?.startsWith('text/event-stream')
  const messages = streamed ? parseEvents(text) : text === '' ? [] : [JSON.parse(text)]
  return { status, headers, text, messages, message: messages.at(-1) }
}

/** A request other than POST, and its whole response. */
export const sendRequest = (url: string, method: string, headers: Headers = {}): Promise<WholeAnswer> =>
  readWhole(exchange(url, { method, headers: present(headers) }))

/** POSTs a message or raw text. */
export const postMessage = (url: string, message: unknown, headers: Headers = {}, from: ExchangeRequest = {}) =>
  readWhole(postOpen(url, message, headers, from))

let lastId = 0

export const initializeMessage = ({ revision = '2025-11-25', capabilities = {} }: SessionSettings = {}) => ({
  id: 'initialize',
  method: 'initialize',
  params: { protocolVersion: revision, capabilities, clientInfo: { name: 'session-client', version: '1.0.0' } },
})

/** Sends `initialize` only. */
export const initialize = (url: string, settings: SessionSettings = {}): Promise<WholeAnswer> =>
  postMessage(
    url,
    initializeMessage(settings),
    settings.headers,
    settings.localAddress === undefined ? {} : { localAddress: settings.localAddress },
  )

/** A session after its handshake. */
export async function openSession(url: string, settings: SessionSettings = {}): Promise<SessionClient> {
  const initialized = await initialize(url, settings)
  const id = initialized.headers['mcp-session-id']
  if (typeof id !== 'string') throw new Error(`initialize was answered ${initialized.status}: ${initialized.text}`)
  const { protocolVersion } = initialized.message.result
  const headers = { ...settings.headers, 'Mcp-Session-Id': id, 'MCP-Protocol-Version': protocolVersion }
  const from = settings.localAddress === undefined ? {} : { localAddress: settings.localAddress }

  const open: SessionClient['open'] = (method, params = {}, { id = ++lastId, headers: more } = {}) =>
    postOpen(url, { id, method, params }, { ...headers, ...more }, from)
  const send: SessionClient['send'] = (body, more) => postMessage(url, body, { ...headers, ...more }, from)
  const verb = (method: string, more: Headers | undefined, base: Headers = {}) =>
    exchange(url, { ...from, method, headers: present({ ...base, ...headers, ...more }) })

  await send({ method: 'notifications/initialized' })
  return {
    id,
    url,
    initialized,
    open,
    send,
    request: (method, params, options) => readWhole(open(method, params, options)),
    call: (name, args = {}, options = {}) =>
      open('tools/call', { name, arguments: args, _meta: { progressToken: `progress of ${name}` } }, options),
    get: more => verb('GET', more, { Accept: 'text/event-stream' }),
    end: more => readWhole(verb('DELETE', more)),
  }
}

/** The next message of a stream, without events that carry none; undefined at the end. */
export async function nextMessage(stream: StreamExchange): Promise<RpcMessage> {
  for (let event = await stream.next(); event; event = await stream.next()) if (event.message) return event.message
  return undefined
}

/** All messages until the end of the stream. */
export const readRest = async (stream: StreamExchange): Promise<RpcMessage[]> =>
  (await stream.rest()).flatMap(({ message }) => (message === undefined ? [] : [message]))

/** Opens `subscriptions/listen` of 2026-07-28. */
export function listen(
  url: string,
  notifications: unknown,
  { id = ++lastId, headers }: RequestOptions = {},
): Promise<StreamExchange> {
  const request = modernRequest('subscriptions/listen', { notifications }, { id })
  return postOpen(url, request.body, { ...request.headers, ...headers })
}

/** The subscription id of a message. */
export const readSubscription = ({ params, result }: RpcMessage): unknown =>
  (params ?? result)['_meta'][META.subscriptionId]
