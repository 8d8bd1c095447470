// HTTP requests and findings of the doctor: any Host header, no redirects, ten second timeout.
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import type { PluginFinding } from '../../core/config/examination.ts'
import { META, MODERN_REVISION } from '../../core/transport.ts'
import { connect, RemoteError } from '../../remote/index.ts'
import { parseObject } from '../text.ts'

export type Finding = PluginFinding

export const reportOn = (check: string) => ({
  ok: (text: string): Finding => ({ check, level: 'ok', text }),
  note: (text: string, fix?: string): Finding => ({ check, level: 'note', text, ...(fix !== undefined && { fix }) }),
  wrong: (text: string, fix: string): Finding => ({ check, level: 'wrong', text, fix }),
})

export interface Target {
  readonly url: string
  readonly token: string | undefined
  readonly origin: string | undefined
  readonly first: DoctorResponse
}

/** Milliseconds. */
const TIMEOUT = 10_000
const MAX_BODY = 1_000_000

interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

export type DoctorResponse = Awaited<ReturnType<typeof request>>

/** The TLS server name for a URL, because Node uses the `Host` header. IP addresses have none (RFC 6066, section 3). */
function serverName(url: string): string {
  const { hostname } = new URL(url)
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : ''
}

/** After a protocol upgrade without a listener, Node.js emits only `close`. */
const receiveResponse = (request: ClientRequest, body?: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request
      .once('response', resolve)
      .on('error', reject)
      .once('close', () => reject(new Error('the connection was closed without a response')))
      .end(body)
  })

export async function open(
  url: string,
  { method = 'GET', headers = {}, body, signal }: RequestOptions = {},
): Promise<IncomingMessage> {
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  const all = { 'User-Agent': 'mcp-host doctor', Connection: 'close', ...length, ...headers }
  const timeout = AbortSignal.timeout(TIMEOUT)
  const combined = signal ? AbortSignal.any([timeout, signal]) : timeout
  const options = { method, headers: all, signal: combined, servername: serverName(url) }
  return receiveResponse(send(url, options), body)
}

export async function firstChunk(response: IncomingMessage): Promise<string | undefined> {
  try {
    for await (const chunk of response) return String(chunk)
  } catch {
  } finally {
    response.destroy()
  }
  return undefined
}

export async function request(url: string, options: RequestOptions = {}) {
  const response = await open(url, options)
  const { statusCode = 0, headers } = response
  let text = ''
  const isStream = headers['content-type']?.startsWith('text/event-stream')
  if (isStream) response.destroy()
  else {
    for await (const chunk of response) {
      text += String(chunk)
      if (text.length > MAX_BODY) break
    }
  }
  const json = parseObject(text)
  const canBeMcp = isStream || text.length > MAX_BODY || json?.['jsonrpc'] === '2.0'
  return { status: statusCode, headers, text, json, canBeMcp }
}

export function createRequest(
  method: string,
  params: object = {},
  headers: Readonly<Record<string, string>> = {},
): RequestOptions {
  const _meta = {
    [META.protocolVersion]: MODERN_REVISION,
    [META.clientInfo]: { name: 'mcp-host doctor', version: '1' },
    [META.clientCapabilities]: {},
  }
  return {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': MODERN_REVISION,
      'Mcp-Method': method,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  }
}

export const bearer = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { Authorization: `Bearer ${token}` }

export function failureText(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ABORT_ERR' ? `no response within ${TIMEOUT / 1_000} seconds` : message || String(code)
}

export type LegacyServer = NonNullable<Awaited<ReturnType<typeof detectLegacy>>>

export async function detectLegacy(url: string, headers: Readonly<Record<string, string>> = {}) {
  const client = { name: 'mcp-host doctor', version: '1' }
  for (const transport of ['http', 'sse'] as const) {
    try {
      const connection = await connect({ url, headers, transport }, { client, era: 'legacy', connectTimeout: TIMEOUT })
      const { revision } = connection
      await connection.close()
      return transport === 'http'
        ? { transport: 'Streamable HTTP', revision }
        : { transport: 'HTTP+SSE', revision: '2024-11-05' }
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error
    }
  }
  return undefined
}
