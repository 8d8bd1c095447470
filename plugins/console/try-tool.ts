// Screen 5: one call of a tool through the public endpoint, as an ordinary client sends it.
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { isObject } from '../../core/plugin.ts'
import { META, MODERN_REVISION } from '../../core/transport.ts'
import type { TryRequest, TryResult } from './api.ts'
import { ApiFailure } from './server.ts'

/** Milliseconds. */
const TIMEOUT = 60_000
const MAX_BYTES = 1_048_576
const MAX_NOTIFICATIONS = 100

async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  const pending: string[] = []
  let bytes = 0
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > MAX_BYTES) throw new ApiFailure(502, 'unavailable', 'The response is larger than 1 MiB.')
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

async function* messagesIn(response: IncomingMessage): AsyncGenerator<Message> {
  const isStream = response.headers['content-type']?.startsWith('text/event-stream')
  const body: string[] = []
  for await (const line of linesOf(response)) {
    if (!isStream) body.push(line)
    else if (line.startsWith('data: ')) yield* parse(line.slice('data: '.length))
  }
  yield* parse(body.join('\n'))
}

/** ASCII only: other names are encoded as the protocol defines. */
const headerValue = (text: string) =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`

interface Sent {
  readonly host: string
  readonly token?: string
  readonly tool: string
  readonly body: string
  readonly signal: AbortSignal
}

function send(url: URL, { host, token, tool, body, signal }: Sent) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      Host: host,
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'MCP-Protocol-Version': MODERN_REVISION,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': headerValue(tool),
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    }
    const sent = request(url, { method: 'POST', headers, agent: false, signal }, resolve)
    sent.on('error', reject)
    sent.end(body)
  })
}

interface Target {
  /** The URL of the host. */
  readonly url: string
  /** The Host header that the host accepts. */
  readonly host: string | undefined
  readonly version: string
  readonly command: string
}

/** Writes each notification, then the `TryResult`, as a line of JSON. A closed response cancels the call. */
export async function tryTool(given: TryRequest, { url, host, version, command }: Target, res: ServerResponse) {
  const began = performance.now()
  const target = new URL(given.path, url)
  if (target.hostname === '0.0.0.0') target.hostname = '127.0.0.1'
  if (target.hostname === '[::]') target.hostname = '[::1]'
  const params = {
    _meta: {
      [META.protocolVersion]: MODERN_REVISION,
      [META.clientInfo]: { name: 'mcp-host-console', version },
      [META.clientCapabilities]: { elicitation: { form: {}, url: {} } },
      progressToken: 'console',
    },
    name: given.tool,
    arguments: given.arguments,
    ...(given.inputResponses && { inputResponses: given.inputResponses }),
    ...(given.requestState !== undefined && { requestState: given.requestState }),
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const { token, tool } = given
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
    const response = await send(target, {
      host: host ?? target.host,
      ...(token !== undefined && { token }),
      tool,
      body,
      signal,
    })
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
