// JSON-RPC over real HTTP for the legacy protocol and 2026-07-28; every header and field can be changed or omitted.
import { Agent, type IncomingMessage, request } from 'node:http'
import { META, MODERN_REVISION } from '../../core/transport.ts'

export interface RpcAnswer {
  readonly status: number
  readonly headers: Headers
  /** The body's text. */
  readonly text: string
  /** Messages of an event stream, or the one JSON body; empty if there was none. */
  readonly messages: readonly RpcMessage[]
  /** The response: the last message. */
  readonly message: RpcMessage
}

// biome-ignore lint/suspicious/noExplicitAny: an answer has any shape; each test states the one it expects
export type RpcMessage = any

const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}

type Fields = Record<string, unknown>
type HeaderChanges = Record<string, string | undefined>

/** The headers that are set. Their values are trimmed, as `fetch` does. */
const present = (headers: HeaderChanges): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value.trim()]])),
  )

/** Parses the messages of an event stream. Skips events without data, which only carry an id. */
export function parseEvents(text: string): RpcMessage[] {
  return text
    .split('\n\n')
    .flatMap(event => event.split('\n').filter(line => line.startsWith('data: ') && line !== 'data: '))
    .map(line => JSON.parse(line.slice('data: '.length)))
}

/** With this agent, a request needs a quarter of the CPU time of `fetch`. */
const agent = new Agent({ keepAlive: true })

const ignore = () => undefined

interface PostOptions {
  readonly signal?: AbortSignal
}

export interface Sent extends PostOptions {
  readonly method?: string
  readonly headers?: HeaderChanges
  readonly body?: string | Uint8Array
}

export type Received = Pick<RpcAnswer, 'status' | 'headers' | 'text'>

/** Rejects with a TypeError if the connection ends, and with the reason of `signal`, as `fetch` does. */
export async function send(url: string, sent: Sent = {}): Promise<Received> {
  try {
    return await sendByAgent(url, sent)
  } catch (cause) {
    if (sent.signal?.aborted) throw sent.signal.reason
    throw new TypeError('the request failed', { cause })
  }
}

/** Receive each response of `send` and `post`, for tests that examine all of them. */
export const responseListeners = new Set<(url: string, received: Received) => void>()

async function sendByAgent(url: string, { method = 'GET', headers = {}, body, signal }: Sent): Promise<Received> {
  const options = { method, agent, headers: present(headers), signal }
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    request(url, options, resolve)
      .on('error', reject)
      // Node.js removes its error listener after the response starts; an error during the body would then be uncaught.
      .on('socket', socket => socket.off('error', ignore).on('error', ignore))
      .end(body),
  )
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  const received = new Headers()
  for (const [name, values = []] of Object.entries(response.headersDistinct))
    for (const value of values) received.append(name, value)
  const answer = { status: response.statusCode ?? 0, headers: received, text }
  for (const listener of responseListeners) listener(url, answer)
  return answer
}

export async function post(
  url: string,
  body: string | Uint8Array,
  headers: HeaderChanges = {},
  options: PostOptions = {},
): Promise<RpcAnswer> {
  const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
  const answer = await send(url, { ...options, method: 'POST', headers: { ...base, ...headers }, body })
  const { headers: received, text } = answer
  const isStream = received.get('content-type')?.startsWith('text/event-stream')
  const messages = isStream ? parseEvents(text) : text === '' ? [] : [JSON.parse(text)]
  return { ...answer, messages, message: messages.at(-1) }
}

export const createMeta = (fields: Fields = {}): Fields => ({
  [META.protocolVersion]: MODERN_REVISION,
  [META.clientInfo]: { name: 'test-client', version: '0.0.1' },
  [META.clientCapabilities]: {},
  ...fields,
})

let nextId = 1

export interface RpcOptions {
  readonly headers?: HeaderChanges
  readonly meta?: Fields
  readonly id?: unknown
  readonly init?: PostOptions
}

/** The headers and body of a request of 2026-07-28. */
export function modernRequest(method: string, params: Fields = {}, { headers, meta, id = nextId++ }: RpcOptions = {}) {
  const named = params[NAMED_BY[method] ?? '']
  return {
    headers: {
      'MCP-Protocol-Version': MODERN_REVISION,
      'Mcp-Method': method,
      ...(typeof named === 'string' && { 'Mcp-Name': named }),
      ...headers,
    } as HeaderChanges,
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: createMeta(meta), ...params } }),
  }
}

/** A request of 2026-07-28. */
export function modern(url: string, method: string, params: Fields = {}, options: RpcOptions = {}): Promise<RpcAnswer> {
  const { headers, body } = modernRequest(method, params, options)
  return post(url, body, headers, options.init)
}

/** A request of a handshake protocol version to a stateless route; `revision: undefined` omits its header. */
export function legacy(
  url: string,
  method: string,
  params: Fields = {},
  { headers, id = nextId++, init, ...rest }: RpcOptions & { revision?: string | undefined } = {},
): Promise<RpcAnswer> {
  const revision = 'revision' in rest ? rest.revision : '2025-11-25'
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
  return post(url, body, { 'MCP-Protocol-Version': revision, ...headers }, init)
}
