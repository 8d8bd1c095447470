// Screen 5: calls tools and reads pages of apps through the public endpoint, like a client.
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { isObject } from '../../core/plugin.ts'
import { META, MODERN_REVISION } from '../../core/transport.ts'
import type { AppRequest, TryRequest, TryResult } from './api.ts'
import { ApiFailure } from './server.ts'

/** Milliseconds. */
const TIMEOUT = 60_000
const APP_TIMEOUT = 10_000
const MAX_BYTES = 1_048_576
/** The plugin `apps` limits pages to 1 MiB by default. Escapes of JSON make them larger. */
const MAX_APP_BYTES = 4 * MAX_BYTES
const MAX_NOTIFICATIONS = 100
const APP_TYPE = 'text/html;profile=mcp-app'

async function* linesOf(response: IncomingMessage, most: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  const pending: string[] = []
  let bytes = 0
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > most) throw new ApiFailure(502, 'unavailable', `The response is larger than ${most / MAX_BYTES} MiB.`)
    const lines = decoder.decode(part, { stream: true }).split('\n')
    for (const line of lines.slice(0, -1)) yield [...pending.splice(0), line].join('')
    pending.push(lines.at(-1) ?? '')
  }
  yield pending.join('')
}

type Message = Readonly<Record<string, unknown>>

function parse(text: string): readonly Message[] {
  try {
    const message: unknown = JSON.parse(text)
    return isObject(message) ? [message] : []
  } catch {
    return []
  }
}

async function* messagesIn(response: IncomingMessage, most = MAX_BYTES): AsyncGenerator<Message> {
  const isStream = response.headers['content-type']?.startsWith('text/event-stream')
  const body: string[] = []
  for await (const line of linesOf(response, most)) {
    if (!isStream) body.push(line)
    else if (line.startsWith('data: ')) yield* parse(line.slice('data: '.length))
  }
  yield* parse(body.join('\n'))
}

/** ASCII only: other names are encoded as the protocol defines. */
const headerValue = (text: string) =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`

interface McpRequest {
  readonly path: string
  readonly token?: string
  readonly method: 'tools/call' | 'resources/read'
  /** The tool or resource, for the header `Mcp-Name`. */
  readonly name: string
  readonly params: object
  readonly signal: AbortSignal
}

interface Target {
  /** The URL of the host. */
  readonly url: string
  /** The Host header that the host accepts. */
  readonly host: string | undefined
  readonly version: string
}

function send({ path, token, method, name, params, signal }: McpRequest, { url, host, version }: Target) {
  const target = new URL(path, url)
  if (target.hostname === '0.0.0.0') target.hostname = '127.0.0.1'
  if (target.hostname === '[::]') target.hostname = '[::1]'
  const _meta = {
    [META.protocolVersion]: MODERN_REVISION,
    [META.clientInfo]: { name: 'mcp-host-console', version },
    [META.clientCapabilities]: {
      elicitation: { form: {}, url: {} },
      extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [APP_TYPE] } },
    },
    progressToken: 'console',
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta, ...params } })
  const headers = {
    Host: host ?? target.host,
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'MCP-Protocol-Version': MODERN_REVISION,
    'Mcp-Method': method,
    'Mcp-Name': headerValue(name),
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
  }
  return new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(target, { method: 'POST', headers, agent: false, signal }, resolve)
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Writes each notification, then the `TryResult`, as a line of JSON. A closed response cancels the call. */
export async function tryTool(given: TryRequest, target: Target, command: string, res: ServerResponse) {
  const began = performance.now()
  const { path, token, tool, inputResponses, requestState } = given
  const params = {
    name: tool,
    arguments: given.arguments,
    ...(inputResponses && { inputResponses }),
    ...(requestState !== undefined && { requestState }),
  }
  const closed = new AbortController()
  res.once('close', () => closed.abort())
  const signal = AbortSignal.any([closed.signal, AbortSignal.timeout(TIMEOUT)])
  const write = (line: object) => {
    if (!res.headersSent) {
      res.writeHead(200, { 'Content-Type': 'application/x-ndjson; charset=utf-8', 'Cache-Control': 'no-store' })
    }
    res.write(`${JSON.stringify(line)}\n`)
  }
  let notifications = 0
  let last: Message = {}
  try {
    const toolCall = { path, ...(token !== undefined && { token }), method: 'tools/call', name: tool, params } as const
    const response = await send({ ...toolCall, signal }, target)
    for await (const message of messagesIn(response)) {
      if ('result' in message || 'error' in message) last = message
      else if (notifications++ < MAX_NOTIFICATIONS) write(message)
    }
    const ms = Math.round(performance.now() - began)
    const commands = [{ label: 'Call', command }]
    write({ status: response.statusCode ?? 0, ms, response: last, commands } satisfies TryResult)
    res.end()
  } catch (error) {
    if (error instanceof ApiFailure) throw error
    throw new ApiFailure(502, 'unavailable', 'The host did not respond to the call.')
  }
}

const appFailure = (message: string) => new ApiFailure(502, 'unavailable', message)

/** Reads the page of an app with the token that the operator entered. */
export async function readApp({ path, uri, token }: AppRequest, target: Target) {
  let last: Message = {}
  try {
    const resourceRead = { path, ...(token !== undefined && { token }), method: 'resources/read', name: uri } as const
    const response = await send({ ...resourceRead, params: { uri }, signal: AbortSignal.timeout(APP_TIMEOUT) }, target)
    for await (const message of messagesIn(response, MAX_APP_BYTES)) last = message
  } catch (error) {
    if (error instanceof ApiFailure) throw error
    throw appFailure('The host did not send the page of the app.')
  }
  const { result, error } = last
  const contents: unknown = isObject(result) && Array.isArray(result['contents']) ? result['contents'][0] : undefined
  if (!isObject(contents)) {
    const reason = isObject(error) && typeof error['message'] === 'string' ? error['message'] : 'no contents'
    throw appFailure(`The page of the app cannot be read: ${reason.slice(0, 500)}`)
  }
  const { mimeType, text, blob, _meta } = contents
  const html =
    typeof blob === 'string' ? Buffer.from(blob, 'base64') : Buffer.from(typeof text === 'string' ? text : '')
  if (mimeType !== APP_TYPE) throw appFailure(`The page of the app must have the MIME type ${APP_TYPE}.`)
  const ui = isObject(_meta) && isObject(_meta['ui']) ? _meta['ui'] : {}
  return { html, csp: isObject(ui['csp']) ? ui['csp'] : {} }
}
