// A result or an error of 2026-07-28 as an older revision has it.
import { isObject } from '../../../core/mcp/is-object.ts'
import { type CallToolResult, type GetPromptResult, META } from '../../../core/mcp/protocol.ts'
import { fitPromptResult, fitToolResult } from '../../../core/mcp/results.ts'
import type { RevisionRules } from '../../../core/mcp/revisions.ts'
import { objectWire } from '../../../core/mcp/view.ts'
import { Failure, type Fields, type Request } from '../messages.ts'

/** Methods whose results say how long they are fresh (server/utilities/caching). */
const CACHEABLE: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
])

const INVALID_PARAMS = -32_602

function without({ [META.serverInfo]: _server, [META.subscriptionId]: _subscription, ...meta }: Fields): Fields {
  return meta
}

/** Without what the newer revision says of its own in `_meta`. */
export function withoutOwnMeta({ _meta, ...fields }: Fields): Fields {
  const kept = isObject(_meta) ? without(_meta) : undefined
  return { ...fields, ...(kept && Object.keys(kept).length > 0 && { _meta: kept }) }
}

const hasObjects = (list: unknown): list is Fields[] => Array.isArray(list) && list.every(isObject)

/** Lists of tools and contents as the revision knows them. What has another shape than a result's stays as it is. */
function fitted(method: string, result: Fields, rules: RevisionRules): Fields {
  const { tools, content, messages } = result
  if (method === 'tools/list' && hasObjects(tools)) return { ...result, tools: tools.map(objectWire) }
  if (method === 'tools/call' && hasObjects(content)) {
    return { ...fitToolResult(result as unknown as CallToolResult, rules) }
  }
  if (method === 'prompts/get' && hasObjects(messages) && messages.every(one => isObject(one['content']))) {
    return { ...fitPromptResult(result as unknown as GetPromptResult, rules) }
  }
  return result
}

/** The result that an older client gets. */
export function olderResult(method: string, result: Fields, rules: RevisionRules): Fields {
  const { resultType: _type, ...rest } = withoutOwnMeta(result)
  if (!CACHEABLE.has(method)) return fitted(method, rest, rules)
  const { ttlMs: _ttl, cacheScope: _scope, ...fresh } = rest
  return fitted(method, fresh, rules)
}

/** A resource that there is none of has a code of its own in older revisions. */
export function olderFailure(failure: Failure, { method, params }: Request, rules: RevisionRules): Failure {
  const { data, code } = failure as { readonly data: Fields | undefined; readonly code: number }
  const isMissing = method === 'resources/read' && code === INVALID_PARAMS && data?.['uri'] === params['uri']
  if (!isMissing) return failure
  return Object.assign(new Failure('refused', failure.message, { code: rules.resourceNotFoundCode }), { data })
}
