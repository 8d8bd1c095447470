// Request headers, including those that repeat body fields (2026-07-28 basic/transports/streamable-http, "Request Metadata").

import { collectHeaderParams, type HeaderParam } from '../../core/mcp/wire/header-params.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import type { Exchange, Fields, Request } from '../messages.ts'

/** The parameter that `Mcp-Name` repeats, by method, including methods of the tasks extension. */
const NAME_PARAMS: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

function encodeHeaderValue(text: string): string {
  const plain = /^[\t -~]*$/.test(text) && text === text.trim() && !/^=\?base64\?.*\?=$/.test(text)
  return plain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

const MAX_TOOLS = 5_000

export type ToolHeaders = ReturnType<typeof createToolHeaders>

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const name of path) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** Creates `Mcp-Param-*` headers from input schemas of relayed tool lists. */
export function createToolHeaders(debug: (what: string) => void) {
  const headerParams = new Map<string, readonly HeaderParam[]>()

  function isUsable(tool: unknown): boolean {
    if (!isObject(tool) || typeof tool['name'] !== 'string') return true
    const { name, inputSchema } = tool
    try {
      const params = isObject(inputSchema)
        ? collectHeaderParams(inputSchema as Parameters<typeof collectHeaderParams>[0])
        : []
      headerParams.delete(name)
      if (params.length > 0 && headerParams.size < MAX_TOOLS) headerParams.set(name, params)
      return true
    } catch (error) {
      debug(`left out the tool ${JSON.stringify(name)}: ${(error as Error).message}`)
      return false
    }
  }

  return {
    /** Records the tools of a `tools/list` result, and returns those that HTTP clients can use. */
    learn: (tools: readonly unknown[]): readonly unknown[] => tools.filter(isUsable),
    of({ method, params }: Request): Readonly<Record<string, string>> {
      const { name, arguments: args } = params
      if (method !== 'tools/call' || typeof name !== 'string') return {}
      const found = headerParams.get(name)
      if (!found) return {}
      const values = found.map(param => [param.header, valueAt(args, param.path)] as const)
      return Object.fromEntries(
        values
          .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
          .map(([header, value]) => [header, encodeHeaderValue(String(value))]),
      )
    },
  }
}

/** Converts header names to lower case, so that the same header is never sent twice. */
export const lowerCase = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

export const JSON_TYPE = 'application/json'
export const SSE_TYPE = 'text/event-stream'
const ACCEPT = `${JSON_TYPE}, ${SSE_TYPE}`
export const POST_HEADERS: Readonly<Record<string, string>> = { 'content-type': JSON_TYPE, accept: ACCEPT }

export function requestHeaders(
  { message: out, version = '' }: Pick<Exchange, 'message' | 'version'>,
  tools: ToolHeaders,
): Record<string, string> {
  const [request] = out.requests
  // Assignments give all requests the same hidden class. Spreads do not.
  const headers: Record<string, string> = {
    'content-type': JSON_TYPE,
    accept: ACCEPT,
    'mcp-protocol-version': version,
  }
  if (!request) return headers
  const { method, params }: { method: string; params: Fields } = request
  headers['mcp-method'] = method
  const name = params[NAME_PARAMS.get(method) ?? '']
  if (typeof name === 'string') headers['mcp-name'] = encodeHeaderValue(name)
  return Object.assign(headers, tools.of(request))
}
