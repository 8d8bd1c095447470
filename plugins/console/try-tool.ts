// Screen 5: one call of a tool through the public endpoint, as an ordinary client sends it.
import { type IncomingMessage, request } from 'node:http'
import { isObject } from '../../core/plugin.ts'
import { META, MODERN_REVISION } from '../../core/transport.ts'
import type { TryRequest, TryResult } from './api.ts'
import { ApiFailure } from './server.ts'

/** Milliseconds. */
const TIMEOUT = 60_000
const MAX_BYTES = 1_048_576
const MAX_NOTIFICATIONS = 100

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > MAX_BYTES) throw new ApiFailure(502, 'unavailable', 'The response is larger than 1 MiB.')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function messagesIn(text: string, type: string): Readonly<Record<string, unknown>>[] {
  const texts = type.startsWith('text/event-stream')
    ? text.split('\n').flatMap(line => (line.startsWith('data: ') && line.length > 6 ? line.slice(6) : []))
    : [text]
  try {
    return texts.flatMap(one => {
      const message: unknown = JSON.parse(one)
      return isObject(message) ? [message] : []
    })
  } catch {
    return []
  }
}

/** ASCII only: other names are encoded as the protocol defines. */
const headerValue = (text: string) =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`

function send(url: URL, { host, token, tool, body }: { host: string; token?: string; tool: string; body: string }) {
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
    const sent = request(url, { method: 'POST', headers, agent: false, signal: AbortSignal.timeout(TIMEOUT) }, resolve)
    sent.on('error', reject)
    sent.end(body)
  })
}

/** `url`: where the host listens. `host`: the Host header that the host accepts. */
export async function tryTool(
  given: TryRequest,
  { url, host, version, command }: { url: string; host: string | undefined; version: string; command: string },
): Promise<TryResult> {
  const began = performance.now()
  const target = new URL(given.path, url)
  if (target.hostname === '0.0.0.0') target.hostname = '127.0.0.1'
  if (target.hostname === '[::]') target.hostname = '[::1]'
  const params = {
    _meta: {
      [META.protocolVersion]: MODERN_REVISION,
      [META.clientInfo]: { name: 'mcp-host-console', version },
      [META.clientCapabilities]: { elicitation: {} },
      progressToken: 'console',
    },
    name: given.tool,
    arguments: given.arguments,
    ...(given.inputResponses && { inputResponses: given.inputResponses }),
    ...(given.requestState !== undefined && { requestState: given.requestState }),
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const { token } = given
  const response = await send(target, {
    host: host ?? target.host,
    ...(token !== undefined && { token }),
    tool: given.tool,
    body,
  }).catch(() => {
    throw new ApiFailure(502, 'unavailable', 'The host did not respond to the call.')
  })
  const messages = messagesIn(await readText(response), response.headers['content-type'] ?? '')
  const last = messages.findLast(message => 'result' in message || 'error' in message) ?? {}
  return {
    status: response.statusCode ?? 0,
    ms: Math.round(performance.now() - began),
    response: last,
    notifications: messages.filter(message => message !== last).slice(0, MAX_NOTIFICATIONS),
    commands: [{ label: 'Call', command }],
  }
}
