// One HTTP request as the doctor sends it: any Host header, no redirect followed, an answer within ten seconds.
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { receiveResponse } from '../../client/node/guarded-fetch.ts'
import { isObject } from '../../core/index.ts'
import { META, MODERN_REVISION } from '../../core/transport.ts'

/** Milliseconds. */
const PATIENCE = 10_000
const MAX_BODY = 1_000_000

export interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Ends the request before its time. */
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body where it is a JSON object. */
  readonly json: Readonly<Record<string, unknown>> | undefined
}

/** The TLS server name for a URL. Node's default is the `Host` header. An IP address has no server name (RFC 6066, section 3). */
function serverName(url: string): string {
  const { hostname } = new URL(url)
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : ''
}

/** Resolves with the head of the answer. Rejects where there is none in time. */
export async function open(
  url: string,
  { method = 'GET', headers = {}, body, signal }: Question = {},
): Promise<IncomingMessage> {
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  const all = { 'User-Agent': 'mcp-host doctor', Connection: 'close', ...length, ...headers }
  const patience = AbortSignal.timeout(PATIENCE)
  const until = signal ? AbortSignal.any([patience, signal]) : patience
  const options = { method, headers: all, signal: until, servername: serverName(url) }
  return receiveResponse(send(url, options), body)
}

function parseObject(text: string): Answer['json'] {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The first piece of an answer's body; undefined where it ends, or nothing comes in time. */
export async function firstPiece(response: IncomingMessage): Promise<string | undefined> {
  try {
    for await (const piece of response) return String(piece)
  } catch {
    // Cut short, or out of patience: nothing came.
  } finally {
    response.destroy()
  }
  return undefined
}

/** Resolves with the whole answer; of an event stream, which may never end, with its head. */
export async function ask(url: string, question: Question = {}): Promise<Answer> {
  const response = await open(url, question)
  const { statusCode = 0, headers } = response
  let text = ''
  if (headers['content-type']?.startsWith('text/event-stream')) response.destroy()
  else {
    for await (const piece of response) {
      text += String(piece)
      if (text.length > MAX_BODY) break
    }
  }
  return { status: statusCode, headers, text, json: parseObject(text) }
}

/** A request of MCP 2026-07-28. */
export function message(method: string, params: object = {}, headers: Readonly<Record<string, string>> = {}): Question {
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

/** Why a request failed, in a few words. */
export function failure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ABORT_ERR' ? `no answer within ${PATIENCE / 1_000} seconds` : message || String(code)
}
