// The requests that are repeated, as a client of 2026-07-28 sends them, and how their answers are checked.
// The same bytes go to every server of a row.
import { ok } from 'node:assert/strict'

export interface BenchRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Throws when a result is not the right one. */
  check(result: Readonly<Record<string, unknown>>): void
  /** How many events come before the last one; 0 or undefined: the answer is not streamed, or streamed without any. */
  readonly events?: number
}

/** Stands in a body for an id that each request has another of: requests of one session that run at once must differ. */
export const UNIQUE_ID = '[<id>]'

const REVISION = '2026-07-28'
/** The resource that changes where streams are measured. */
export const NEWS = 'bench://news'
const MESSAGE = 'The quick brown fox jumps over the lazy dog.'

/** A request of the revision whose requests carry their own metadata (2026-07-28, streamable HTTP, "Request Metadata"). */
function modernRequest(method: string, params: { name?: string; arguments?: object; notifications?: object }) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return {
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': REVISION,
      'Mcp-Method': method,
      ...(params.name !== undefined && { 'Mcp-Name': params.name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  }
}

/** `tools/call` of a tool that returns its message. */
export const callTool = (name: string): BenchRequest => ({
  ...modernRequest('tools/call', { name, arguments: { message: MESSAGE } }),
  check({ content, isError }) {
    const [block] = content as [{ text?: unknown }?]
    ok(block?.text === MESSAGE && isError !== true, `${name} did not return its message`)
  },
})

/** `tools/call` of the operation `echo`, which returns its message as JSON. */
export const callEchoApi: BenchRequest = {
  ...callTool('echo'),
  check({ structuredContent, isError }) {
    const { message } = structuredContent as { readonly message?: unknown }
    ok(message === MESSAGE && isError !== true, 'the API did not return the message')
  },
}

/** The same of a route with `search`, by way of `call_tool`. */
export const callThrough = (name: string): BenchRequest => ({
  ...modernRequest('tools/call', { name: 'call_tool', arguments: { name, arguments: { message: MESSAGE } } }),
  check: callTool(name).check,
})

/** `find_tools` of a route with `search`. */
export const findTools = (query: string): BenchRequest => ({
  ...modernRequest('tools/call', { name: 'find_tools', arguments: { query } }),
  check({ structuredContent }) {
    const { tools } = structuredContent as { tools: readonly unknown[] }
    ok(tools.length === 5, `"${query}" found ${tools.length} tools`)
  },
})

/** `tools/call` of `echo`. */
export const callEcho = callTool('echo')

/** The same call by a client that wants to hear of progress. */
export function withProgress(request: BenchRequest, events: number): BenchRequest {
  const { params, ...rest } = JSON.parse(request.body) as { params: { _meta: object } }
  const _meta = { ...params._meta, progressToken: 'progress' }
  return { ...request, body: JSON.stringify({ ...rest, params: { ...params, _meta } }), events }
}

/** `tools/call` of the tool that tells listeners of news. */
export const callTell: BenchRequest = {
  ...modernRequest('tools/call', { name: 'tell', arguments: {} }),
  check: () => undefined,
}

/** `subscriptions/listen` to the resource that changes. */
export const listenToNews: BenchRequest = {
  ...modernRequest('subscriptions/listen', { notifications: { resourceSubscriptions: [NEWS] } }),
  check: () => undefined,
}

/** `tools/call` of a tool that returns so many megabytes, as text of records. */
export const callForMegabytes = (name: string, megabytes: number): BenchRequest => ({
  ...modernRequest('tools/call', { name, arguments: { megabytes } }),
  check({ content }) {
    const [block] = content as [{ text?: unknown }?]
    ok(typeof block?.text === 'string' && block.text.length >= megabytes * 1e6, `${name} returned too little`)
  },
})

/** `tools/call` of a tool that is given `text` and returns its length. */
export const callWithText = (name: string, text: string): BenchRequest => ({
  ...modernRequest('tools/call', { name, arguments: { text } }),
  check({ content }) {
    const [block] = content as [{ text?: unknown }?]
    ok(block?.text === String(text.length), `${name} did not get all of its text`)
  },
})

/** `tools/list`, all tools on one page. */
export const listTools = (count: number): BenchRequest => ({
  ...modernRequest('tools/list', {}),
  check({ tools }) {
    ok(Array.isArray(tools) && tools.length === count, `the list does not hold ${count} tools`)
  },
})

/** The JSON-RPC message in a response: its whole body, or the last event of a stream. */
function messageIn(text: string, type: string): { result?: Record<string, unknown>; error?: unknown } {
  if (!type.startsWith('text/event-stream')) return JSON.parse(text)
  const last = text.split('\n').findLast(line => line.startsWith('data:'))
  return JSON.parse(last?.slice('data:'.length) ?? 'null') ?? {}
}

/** Sends the request once and throws unless it is answered as it must be. */
export async function checkSample(url: string, request: BenchRequest, signal: AbortSignal): Promise<void> {
  const { headers, body } = request
  const response = await fetch(url, { method: 'POST', headers, body, signal })
  const text = await response.text()
  try {
    ok(response.ok, `status ${response.status}`)
    const events = text.match(/^data: ?\{/gm)?.length ?? 1
    ok(events > (request.events ?? 0), `${events} events`)
    const { result, error } = messageIn(text, response.headers.get('content-type') ?? '')
    ok(error === undefined && result !== undefined, 'the answer is an error')
    request.check(result)
  } catch (cause) {
    throw new Error(`${cause instanceof Error ? cause.message : cause}; the answer was: ${text.slice(0, 400)}`, {
      cause,
    })
  }
}
