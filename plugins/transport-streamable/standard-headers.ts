// Holds the headers of a 2026-07-28 request against its body, so that whoever routes by them and whoever answers see
// the same request (basic/transports/streamable-http, "Server Validation").
import type { IncomingHttpHeaders } from 'node:http'
import { type Call, HostError, isObject } from '../../core/index.ts'
import { checkHeaderParams, decodeHeaderValue, shown } from '../../core/transport.ts'

/** The parameter that `Mcp-Name` repeats, by method. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

type Params = Readonly<Record<string, unknown>>

const mismatch = (detail: string) => new HostError('headerMismatch', { detail })

const quoted = (value: unknown) => shown(JSON.stringify(value) ?? 'nothing')

function checkMethod(headers: IncomingHttpHeaders, method: string) {
  const named = headers['mcp-method']
  if (named !== method) throw mismatch(`Mcp-Method is ${quoted(named)}, the body's method is ${quoted(method)}`)
}

/** Checks `Mcp-Method` and `Mcp-Name`, which extensions have for methods of theirs too. Throws `headerMismatch`. */
export function checkStandardHeaders(
  headers: IncomingHttpHeaders,
  { method, params }: { readonly method: string; readonly params: Params },
  ofExtensions: ReadonlyMap<string, string>,
): void {
  checkMethod(headers, method)
  const key = NAMED_BY.get(method) ?? ofExtensions.get(method)
  if (key === undefined) return
  const raw = headers['mcp-name']
  const name = typeof raw === 'string' ? decodeHeaderValue(raw) : undefined
  if (name === undefined) throw mismatch(`Mcp-Name is ${raw === undefined ? 'missing' : 'malformed'}`)
  if (name !== params[key]) throw mismatch(`Mcp-Name is ${quoted(name)}, the body's ${key} is ${quoted(params[key])}`)
}

/** Checks `Mcp-Method` of a notification, which need not carry it. Throws `headerMismatch`. */
export function checkNotificationHeaders(headers: IncomingHttpHeaders, method: string): void {
  if (headers['mcp-method'] !== undefined) checkMethod(headers, method)
}

/**
 * Checks the `Mcp-Param-*` headers that a tool's input schema asks for. Throws `headerMismatch`, which names a parameter:
 * not to those who may not use the tool, whom the call itself refuses.
 */
export function checkToolHeaders({ headers, view, method, params }: Call): void {
  if (method !== 'tools/call') return
  const { name } = params
  const tool = typeof name === 'string' ? view.tools.get(name) : undefined
  if (!tool || tool.headerParams.length === 0 || view.denialOf(tool)) return
  const { arguments: args } = params
  const reason = checkHeaderParams(tool.headerParams, headers, isObject(args) ? args : {})
  if (reason !== undefined) throw mismatch(reason)
}
