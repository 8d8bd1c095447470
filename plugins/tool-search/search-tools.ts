// The tools `find_tools` and `call_tool`. The named tool replaces a `call_tool` call before access checks.

import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { ToolItem } from '../../core/auth.ts'
import { defineTool, HostError, type JsonSchema, ToolError } from '../../core/index.ts'
import { type InternalHost, nearest } from '../../core/internal.ts'
import { type Call, isObject } from '../../core/plugin.ts'
import { callOf, checkHeaderParams, shown, type View } from '../../core/transport.ts'
import type { ToolIndex } from './tool-index.ts'

export const FIND_TOOLS = 'find_tools'
export const CALL_TOOL = 'call_tool'

export const isOwn = (name: string): boolean => name === FIND_TOOLS || name === CALL_TOOL

/** Maximum tools in all cached indexes. An index with more tools is the only cached one. */
const MAX_INDEXED = 10_000
const MAX_INDEXES = 1_000

/** True if models can see a tool: an app can restrict a tool to its page (`_meta.ui.visibility`). */
function isForModels(tool: ToolItem, view: View): boolean {
  const { _meta } = view.wireOf(tool)
  const visibility = isObject(_meta) && isObject(_meta['ui']) ? _meta['ui']['visibility'] : undefined
  return !Array.isArray(visibility) || visibility.includes('model')
}

const isFound = (tool: ToolItem, view: View): boolean =>
  !isOwn(tool.key) && view.denialOf(tool) === undefined && isForModels(tool, view)

interface Searches {
  /** Returns at most `limit` tools that this caller can call and that match the query, the best first. */
  find(view: View, query: string, limit: number): Promise<ToolItem[]>
}

async function build(tools: readonly ToolItem[]): Promise<ToolIndex> {
  const { createToolIndex } = await import('./tool-index.ts')
  return createToolIndex(tools)
}

function createIndexes() {
  const indexes = new LRUCache<string, Promise<ToolIndex>>({ max: MAX_INDEXES, maxSize: MAX_INDEXED })
  const ids = new WeakMap<ToolItem, number>()
  const keys = new WeakMap<View, string>()
  let nextId = 0

  function idOf(tool: ToolItem): number {
    const id = ids.get(tool) ?? nextId++
    ids.set(tool, id)
    return id
  }

  const foundIn = (view: View) => [...view.tools.values()].filter(tool => isFound(tool, view))

  function keyOf(view: View): string {
    const key = keys.get(view) ?? hash('sha256', foundIn(view).map(idOf).join(), 'base64url')
    keys.set(view, key)
    return key
  }

  function indexOf(view: View): Promise<ToolIndex> {
    const key = keyOf(view)
    const known = indexes.get(key)
    if (known) return known
    const tools = foundIn(view)
    const made = build(tools)
    indexes.set(key, made, { size: Math.min(MAX_INDEXED, Math.max(1, tools.length)) })
    made.catch(() => indexes.delete(key))
    return made
  }

  return { indexOf, size: () => indexes.calculatedSize }
}

export function createSearches(metrics: InternalHost['metrics']): Searches {
  const { indexOf, size } = createIndexes()
  metrics.gauge({ name: 'mcp_host_tool_search_indexed_tools', help: 'Tools in the indexes of find_tools.' }, size)
  const counted = metrics.counter({
    name: 'mcp_host_tool_searches_total',
    help: 'Queries of find_tools, by whether they found a tool.',
    labels: ['outcome'],
  })
  return {
    async find(view, query, limit) {
      const found = (await indexOf(view)).search(query, limit)
      counted(1, { outcome: found.length > 0 ? 'found' : 'nothing' })
      return found
    },
  }
}

/** Maximum characters of a query. */
const MAX_QUERY = 512
const MAX_NAME = 256
const LIMIT = { standard: 5, most: 20 }

const FIND_DESCRIPTION = [
  'Finds tools of this server by what they do. Most of them are in no list: search here before you say that something cannot',
  'be done. Describe the task in a few words, such as "refund an order", or give a part of a name. Answers with the tools that',
  `fit best, each with its name, description and input schema. Run one with ${CALL_TOOL}.`,
].join(' ')

const CALL_DESCRIPTION = [
  `Runs a tool of this server by its name, as ${FIND_TOOLS} gave it, and answers with that tool's own result. \`arguments\` must`,
  "fit the tool's inputSchema: look it up first.",
].join(' ')

const NOTHING = 'No tool fits. Try other words: what is done, and to what.'

const viewOf = (ctx: Parameters<typeof callOf>[0]): View => {
  const call = callOf(ctx)
  if (!call) throw new Error('this tool can be called only by a host')
  return call.view
}

function describe(tool: ToolItem, view: View) {
  const { name, title, description, inputSchema, annotations } = view.wireOf(tool)
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema,
    ...(annotations !== undefined && { annotations }),
  }
}

function refusal(name: string, view: View): ToolError {
  if (isOwn(name)) return new ToolError(`${CALL_TOOL} runs other tools; call ${name} by its own name.`)
  const others = [...view.tools.values()].filter(tool => isFound(tool, view)).map(({ key }) => key)
  const near = nearest(name, others)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  return new ToolError(`There is no tool "${shown(name)}".${hint} ${FIND_TOOLS} finds those that there are.`)
}

const FIND_INPUT = {
  type: 'object',
  properties: {
    query: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_QUERY,
      description: 'What is to be done, in a few words, or a part of a name.',
    },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: LIMIT.most,
      default: LIMIT.standard,
      description: 'How many tools at most.',
    },
  },
  required: ['query'],
  additionalProperties: false,
} as const satisfies JsonSchema

const text = { type: 'string' } as const
const object = { type: 'object' } as const
const FOUND = {
  type: 'object',
  properties: { name: text, title: text, description: text, inputSchema: object, annotations: object },
  required: ['name', 'inputSchema'],
}

const FIND_OUTPUT: JsonSchema = {
  type: 'object',
  properties: { tools: { type: 'array', description: 'The best first.', items: FOUND }, hint: text },
  required: ['tools'],
}

const CALL_INPUT = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: MAX_NAME, description: 'The name of the tool.' },
    arguments: { type: 'object', description: 'Its arguments. Default: {}.' },
  },
  required: ['name'],
  additionalProperties: false,
} as const satisfies JsonSchema

export function createSearchTools(searches: Searches) {
  const find = defineTool({
    name: FIND_TOOLS,
    title: 'Find tools',
    description: FIND_DESCRIPTION,
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    input: FIND_INPUT,
    output: FIND_OUTPUT,
    async handler({ query, limit = LIMIT.standard }, ctx) {
      const view = viewOf(ctx)
      const found = await searches.find(view, query, limit)
      const tools = found.map(tool => describe(tool, view))
      return tools.length > 0 ? { tools } : { tools, hint: NOTHING }
    },
  })

  const call = defineTool({
    name: CALL_TOOL,
    title: 'Call a tool',
    description: CALL_DESCRIPTION,
    input: CALL_INPUT,
    handler({ name }, ctx) {
      throw refusal(name, viewOf(ctx))
    },
  })
  return [find, call]
}

/** Checks the `Mcp-Param-*` headers that were sent. A client that lists only `call_tool` sends none. */
function checkHeaders({ headers, modern }: Call, { headerParams }: ToolItem, args: Record<string, unknown>): void {
  if (!modern) return
  const sent = headerParams.filter(({ header }) => headers[header] !== undefined)
  const reason = sent.length === 0 ? undefined : checkHeaderParams(sent, headers, args)
  if (reason !== undefined) throw new HostError('headerMismatch', { detail: reason })
}

/** Returns the params of the named tool. Undefined for other calls, and if `call_tool` must explain a mistake. */
export function redirectCall(call: Call): Record<string, unknown> | undefined {
  const { method, params, view } = call
  if (method !== 'tools/call' || params['name'] !== CALL_TOOL) return undefined
  const own = view.tools.get(CALL_TOOL)
  if (!own || view.denialOf(own)) return undefined
  const { arguments: given } = params
  if (!isObject(given) || Object.keys(given).some(key => key !== 'name' && key !== 'arguments')) return undefined
  const { name, arguments: args = {} } = given
  const tool = typeof name === 'string' && !isOwn(name) ? view.tools.get(name) : undefined
  if (!tool || !isObject(args) || !isForModels(tool, view)) return undefined
  if (!view.denialOf(tool)) checkHeaders(call, tool, args)
  return { ...params, name, arguments: args }
}
