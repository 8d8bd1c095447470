// Request headers and their relation to the body: Accept, the protocol version, and the standard headers of 2026-07-28.
import type { IncomingHttpHeaders } from 'node:http'
import Negotiator from 'negotiator'
import { HostError, type LogLevel } from '../../core/index.ts'
import { type Call, isObject, type Revision } from '../../core/plugin.ts'
import {
  ASSUMED_REVISION,
  type ClientInfo,
  checkHeaderParams,
  decodeHeaderValue,
  isHandshakeRevision,
  isModernRevision,
  LATEST_HANDSHAKE,
  META,
  type Message,
  MODERN_REVISION,
  shown,
  type ValidMessage,
} from '../../core/transport.ts'
import { namesOwnVersion, readRequestMeta, unsupported } from '../families/per-request/index.ts'

const JSON_TYPE = 'application/json'
const SSE_TYPE = 'text/event-stream'
const BOTH_TYPES = [JSON_TYPE, SSE_TYPE]
/** Responses are UTF-8, so a range with that charset matches too. */
const ACCEPTED_TYPES = BOTH_TYPES.flatMap(type => [type, `${type};charset=utf-8`])

/** Results for the first Accept headers; clients send few different ones. */
const acceptCache = new Map<string, ReadonlySet<string>>()
const MAX_CACHED = 200

function readAccept(accept: string): ReadonlySet<string> {
  const ranges = new Negotiator({ headers: { accept } }).mediaTypes(ACCEPTED_TYPES)
  const types = new Set(ranges.map(type => type.split(';')[0] ?? ''))
  if (acceptCache.size < MAX_CACHED && accept.length < 200) acceptCache.set(accept, types)
  return types
}

/** Checks the header. Throws `notAcceptable`. */
export function requireAccept(accept: string | undefined, needed: readonly string[] = BOTH_TYPES): void {
  // Without the header any type is accepted (RFC 9110 section 12.5.1).
  if (accept === undefined) return
  const types = acceptCache.get(accept) ?? readAccept(accept)
  for (const type of needed) {
    if (types.has(type)) continue
    throw new HostError('notAcceptable', { detail: `Accept must allow ${needed.join(' and ')}` })
  }
}

export const requireEventStream = (accept: string | undefined): void => requireAccept(accept, [SSE_TYPE])

export const readVersionHeader = (headers: IncomingHttpHeaders): string | undefined => {
  const value = headers['mcp-protocol-version']
  return Array.isArray(value) ? value.join(', ') : value
}

/** Protocol version and sender metadata of a message. */
export interface Meta {
  readonly revision: Revision
  readonly client: ClientInfo
  readonly logLevel: LogLevel | undefined
}

type Incoming = Extract<Message, { kind: 'request' | 'notification' }>

const UNKNOWN_CLIENT: ClientInfo = { info: undefined, capabilities: {} }

/** True if `_meta` or the version header names a version without handshake. */
export function isModern(message: ValidMessage, header: string | undefined): boolean {
  // `initialize` negotiates in its body, so its header matters only if it names a version without handshake.
  const isInitialize = message.kind === 'request' && message.method === 'initialize' && !isModernRevision(header)
  if (header !== undefined && !isHandshakeRevision(header) && !isInitialize) return true
  return message.kind !== 'response' && isObject(message.params['_meta']) && namesOwnVersion(message)
}

/** Reads a message of a version without handshake. Throws `invalidMeta`, `headerMismatch` or `unsupportedVersion`. */
export function readModern(message: Incoming, header: string | undefined, supported: readonly Revision[]): Meta {
  const meta = message.params['_meta']
  if (message.kind === 'notification') {
    // Only the header names the version of a notification.
    if (header !== undefined && !isModernRevision(header)) throw unsupported(header, supported)
    return { revision: header ?? MODERN_REVISION, client: UNKNOWN_CLIENT, logLevel: undefined }
  }
  const hasVersion = isObject(meta) && meta[META.protocolVersion] !== undefined
  if (!hasVersion && header !== undefined && !isModernRevision(header)) throw unsupported(header, supported)
  if (!hasVersion && message.method === 'initialize') {
    throw mismatch(`MCP-Protocol-Version is ${header}, which has no initialize; leave the header out`)
  }
  const { version, client, logLevel } = readRequestMeta(meta)
  if (header !== version) {
    throw mismatch(`MCP-Protocol-Version is ${shown(header ?? 'missing')}, the body says ${shown(version)}`)
  }
  if (!isModernRevision(version) || !supported.includes(version)) throw unsupported(version, supported)
  return { revision: version, client, logLevel }
}

/** Reads a message of a handshake version on a route without sessions. Throws `unsupportedVersion`. */
export function readLegacy(message: Incoming, header: string | undefined, supported: readonly Revision[]): Meta {
  const isInitialize = message.method === 'initialize'
  const requested = isInitialize ? message.params['protocolVersion'] : header
  const revision = isHandshakeRevision(requested) ? requested : isInitialize ? LATEST_HANDSHAKE : ASSUMED_REVISION
  if (!supported.includes(revision)) throw unsupported(typeof requested === 'string' ? requested : revision, supported)
  return { revision, client: UNKNOWN_CLIENT, logLevel: undefined }
}

/** The parameter that `Mcp-Name` repeats, by method. */
const NAME_PARAMS: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/** Matches names and URIs that are not encoded. */
const PLAIN_NAME = /^[\w.:/-]+$/

const mismatch = (detail: string) => new HostError('headerMismatch', { detail })

const quote = (value: unknown) => shown(JSON.stringify(value) ?? 'nothing')

/** Ensures that proxies see the same request as the host (basic/transports/streamable-http, "Server Validation"). */
export function checkStandardHeaders(
  headers: IncomingHttpHeaders,
  { kind, method, params }: Incoming,
  extensionNameParams: ReadonlyMap<string, string>,
): void {
  const sent = headers['mcp-method']
  if (kind === 'notification' && sent === undefined) return
  if (sent !== method) throw mismatch(`Mcp-Method is ${quote(sent)}, the body's method is ${quote(method)}`)
  const key = kind === 'request' ? (NAME_PARAMS.get(method) ?? extensionNameParams.get(method)) : undefined
  if (key === undefined) return
  const raw = headers['mcp-name']
  const name = typeof raw !== 'string' ? undefined : PLAIN_NAME.test(raw) ? raw : decodeHeaderValue(raw)
  if (name === undefined) throw mismatch(`Mcp-Name is ${raw === undefined ? 'missing' : 'malformed'}`)
  if (name !== params[key]) throw mismatch(`Mcp-Name is ${quote(name)}, the body's ${key} is ${quote(params[key])}`)
}

/** Checks the `Mcp-Param-*` headers of a tool, unless the caller cannot use it. Throws `headerMismatch`. */
export function checkToolHeaders({ headers, view, method, params }: Call): void {
  if (method !== 'tools/call') return
  const { name, arguments: args } = params
  const tool = typeof name === 'string' ? view.tools.get(name) : undefined
  if (!tool || tool.headerParams.length === 0 || view.denialOf(tool)) return
  const reason = checkHeaderParams(tool.headerParams, headers, isObject(args) ? args : {})
  if (reason !== undefined) throw mismatch(reason)
}
