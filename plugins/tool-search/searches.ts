// Search indexes, one per set of visible tools, so that hidden tools never influence results.
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { ToolItem } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { isObject } from '../../core/plugin.ts'
import type { View } from '../../core/transport.ts'
import type { ToolIndex } from './tool-index.ts'

export const FIND_TOOLS = 'find_tools'
export const CALL_TOOL = 'call_tool'

export const isOwn = (name: string): boolean => name === FIND_TOOLS || name === CALL_TOOL

/** Maximum tools in all cached indexes. An index with more tools is the only cached one. */
const MAX_INDEXED = 10_000
const MAX_INDEXES = 1_000

/** True if models can see a tool: an app can restrict a tool to its page (`_meta.ui.visibility`). */
export function isForModels(tool: ToolItem, view: View): boolean {
  const { _meta } = view.wireOf(tool)
  const visibility = isObject(_meta) && isObject(_meta['ui']) ? _meta['ui']['visibility'] : undefined
  return !Array.isArray(visibility) || visibility.includes('model')
}

export const isFound = (tool: ToolItem, view: View): boolean =>
  !isOwn(tool.key) && view.denialOf(tool) === undefined && isForModels(tool, view)

export interface Searches {
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

export function createSearches(figures: InternalHost['metrics']): Searches {
  const { indexOf, size } = createIndexes()
  figures.gauge({ name: 'mcp_host_tool_search_indexed_tools', help: 'Tools in the indexes of find_tools.' }, size)
  const counted = figures.counter({
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
