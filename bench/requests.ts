// The requests of the benchmark in protocol version 2026-07-28, with checks of their results.
// All servers of a row receive the same bytes.
import { ok } from 'node:assert/strict'

export interface BenchRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Throws if the result is wrong. */
  check(result: Readonly<Record<string, unknown>>): void
  /** Minimum number of events before the result of a streamed response. */
  readonly events?: number
}

/** Placeholder in a body for a unique request id: concurrent requests of a session must have different ids. */
export const ID_PLACEHOLDER = '[<id>]'

const PROTOCOL_VERSION = '2026-07-28'
/** The resource of notifying-host.ts. */
export const RESOURCE_URI = 'bench://resource'
const MESSAGE = 'The quick brown fox jumps over the lazy dog.'

/** Adds the metadata that each request of 2026-07-28 carries (streamable HTTP, "Request Metadata"). */
function createRequest(method: string, params: { name?: string; arguments?: object; notifications?: object }) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': PROTOCOL_VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return {
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': PROTOCOL_VERSION,
      'Mcp-Method': method,
      ...(params.name !== undefined && { 'Mcp-Name': params.name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  }
}

/** Calls a tool that returns its message. */
export const callTool = (name: string): BenchRequest => ({
  ...createRequest('tools/call', { name, arguments: { message: MESSAGE } }),
  check({ content, isError }) {
    const [block] = content as [{ text?: unknown }?]
    ok(block?.text === MESSAGE && isError !== true, `${name} did not return its message`)
  },
})

/** Calls the operation `echo`, which returns its message as JSON. */
export const callEchoApi: BenchRequest = {
  ...callTool('echo'),
  check({ structuredContent, isError }) {
    const { message } = structuredContent as { readonly message?: unknown }
    ok(message === MESSAGE && isError !== true, 'the API did not return the message')
  },
}

/** Calls a tool through `call_tool`, on a route with `search`. */
export const callViaCallTool = (name: string): BenchRequest => ({
  ...createRequest('tools/call', { name: 'call_tool', arguments: { name, arguments: { message: MESSAGE } } }),
  check: callTool(name).check,
})

/** Calls `find_tools`, on a route with `search`. */
export const callFindTools = (query: string): BenchRequest => ({
  ...createRequest('tools/call', { name: 'find_tools', arguments: { query } }),
  check({ structuredContent }) {
    const { tools } = structuredContent as { tools: readonly unknown[] }
    ok(tools.length === 5, `"${query}" found ${tools.length} tools`)
  },
})

export const callEcho = callTool('echo')

/** Adds a progress token, so that the response is streamed. */
export function withProgress(request: BenchRequest, events: number): BenchRequest {
  const { params, ...rest } = JSON.parse(request.body) as { params: { _meta: object } }
  const _meta = { ...params._meta, progressToken: 'progress' }
  return { ...request, body: JSON.stringify({ ...rest, params: { ...params, _meta } }), events }
}

/** Calls the tool that notifies the listeners. */
export const callNotify: BenchRequest = {
  ...createRequest('tools/call', { name: 'notify', arguments: {} }),
  check: () => undefined,
}

/** Opens a `subscriptions/listen` stream for RESOURCE_URI. */
export const listenForUpdates: BenchRequest = {
  ...createRequest('subscriptions/listen', { notifications: { resourceSubscriptions: [RESOURCE_URI] } }),
  check: () => undefined,
}

/** Calls `produce`, which returns a text of this size. */
export const callProduce = (megabytes: number): BenchRequest => ({
  ...createRequest('tools/call', { name: 'produce', arguments: { megabytes } }),
  check({ content }) {
    const [block] = content as [{ text?: unknown }?]
    ok(
      typeof block?.text === 'string' && block.text.length >= megabytes * 1e6,
      `produce returned less than ${megabytes} MB`,
    )
  },
})

/** Calls `consume`, which returns the length of its text. */
export const callConsume = (text: string): BenchRequest => ({
  ...createRequest('tools/call', { name: 'consume', arguments: { text } }),
  check({ content }) {
    const [block] = content as [{ text?: unknown }?]
    ok(block?.text === String(text.length), 'consume did not receive the complete text')
  },
})

export const listTools = (count: number): BenchRequest => ({
  ...createRequest('tools/list', {}),
  check({ tools }) {
    ok(Array.isArray(tools) && tools.length === count, `the list does not have ${count} tools`)
  },
})

/** Parses the JSON-RPC message of a response: its body, or the last event of a stream. */
function parseMessage(text: string, type: string): { result?: Record<string, unknown>; error?: unknown } {
  if (!type.startsWith('text/event-stream')) return JSON.parse(text)
  const last = text.split('\n').findLast(line => line.startsWith('data:'))
  return JSON.parse(last?.slice('data:'.length) ?? 'null') ?? {}
}

/** Sends the request once and throws if the response is wrong. */
export async function verifyResponse(url: string, request: BenchRequest, signal: AbortSignal): Promise<void> {
  const { headers, body } = request
  const response = await fetch(url, { method: 'POST', headers, body, signal })
  const text = await response.text()
  try {
    ok(response.ok, `status ${response.status}`)
    const events = text.match(/^data: ?\{/gm)?.length ?? 1
    ok(events > (request.events ?? 0), `${events} events`)
    const { result, error } = parseMessage(text, response.headers.get('content-type') ?? '')
    ok(error === undefined && result !== undefined, 'the response is an error')
    request.check(result)
  } catch (cause) {
    throw new Error(`${cause instanceof Error ? cause.message : cause}; response: ${text.slice(0, 400)}`, { cause })
  }
}
