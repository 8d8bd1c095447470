// A call of `call_tool` becomes a call of the tool that it names, before anybody is told of it: access, arguments, limits,
// records and questions are that tool's own.
import type { ToolItem } from '../../core/auth.ts'
import { type Call, HostError, isObject } from '../../core/index.ts'
import { checkHeaderParams } from '../../core/transport.ts'
import { CALL_TOOL, isOwn } from './names.ts'
import { isForModels } from './searches.ts'

/**
 * Headers that repeat parameters of the tool must agree where they are sent. A client that knows `call_tool` alone sends none:
 * it was told of no such parameters.
 */
function checkHeaders({ headers, modern }: Call, { headerParams }: ToolItem, args: Record<string, unknown>): void {
  if (!modern) return
  const sent = headerParams.filter(({ header }) => headers[header] !== undefined)
  const reason = sent.length === 0 ? undefined : checkHeaderParams(sent, headers, args)
  if (reason !== undefined) throw new HostError('headerMismatch', { detail: reason })
}

/** The params of the call that is meant; undefined where it is another method or tool, or the tool itself has to say what is wrong. */
export function redirectCall(call: Call): Record<string, unknown> | undefined {
  const { method, params, view } = call
  if (method !== 'tools/call' || params['name'] !== CALL_TOOL) return undefined
  const own = view.tools.get(CALL_TOOL)
  // Who may not use it is refused as it is.
  if (!own || view.denialOf(own)) return undefined
  const { arguments: given } = params
  if (!isObject(given) || Object.keys(given).some(key => key !== 'name' && key !== 'arguments')) return undefined
  const { name, arguments: args = {} } = given
  const tool = typeof name === 'string' && !isOwn(name) ? view.tools.get(name) : undefined
  if (!tool || !isObject(args) || !isForModels(tool, view)) return undefined
  if (!view.denialOf(tool)) checkHeaders(call, tool, args)
  return { ...params, name, arguments: args }
}
