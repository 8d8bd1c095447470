// Who finds what: an index for each set of tools that some view has, made with its first query, and asked for what the
// caller may call. Views of one set share it: what one caller may not call is left out of the answer, not of the index.
import type { ToolItem } from '../../core/auth.ts'
import { isObject, type PluginHost } from '../../core/index.ts'
import type { View } from '../../core/transport.ts'
import { isOwn } from './names.ts'
import type { ToolIndex } from './tool-index.ts'

/** Indexes that are kept, and the tools in all of them together, but for the one that was asked last. */
const MAX_INDEXES = 16
const MAX_TOOLS = 25_000

/** Tools that an app says are for its page alone, not for models (`_meta.ui.visibility`). */
export function isForModels(tool: ToolItem, view: View): boolean {
  const { _meta } = view.wireOf(tool)
  const visibility = isObject(_meta) && isObject(_meta['ui']) ? _meta['ui']['visibility'] : undefined
  return !Array.isArray(visibility) || visibility.includes('model')
}

/** Whether this caller finds it: what they may call, and no other. */
export const isFound = (tool: ToolItem, view: View): boolean =>
  !isOwn(tool.key) && view.denialOf(tool) === undefined && isForModels(tool, view)

/** An index, and what is in it. */
interface Indexed {
  readonly tools: readonly ToolItem[]
  readonly index: Promise<ToolIndex>
}

async function build(tools: readonly ToolItem[]): Promise<ToolIndex> {
  const { createToolIndex } = await import('./tool-index.ts')
  return createToolIndex(tools)
}

export interface Searches {
  /** What this caller may call and fits the query best, at most `limit`, the best first. */
  find(view: View, query: string, limit: number): Promise<ToolItem[]>
}

const holds = ({ tools }: Indexed, wanted: readonly ToolItem[]): boolean =>
  tools.length === wanted.length && tools.every((tool, index) => tool === wanted[index])

export function createSearches(figures: PluginHost['figures']): Searches {
  /** That which was asked last is at the end. */
  let kept: Indexed[] = []
  // A view does not keep an index alive that is not kept: there are far more views.
  const known = new WeakMap<View, WeakRef<Indexed>>()
  figures.gauge({ name: 'mcp_host_tool_search_indexed_tools', help: 'Tools in the indexes of find_tools.' }, () =>
    kept.reduce((sum, { tools }) => sum + tools.length, 0),
  )
  const counted = figures.counter({
    name: 'mcp_host_tool_searches_total',
    help: 'Queries of find_tools, by whether they found a tool.',
    labels: ['outcome'],
  })

  function keep(indexed: Indexed): Indexed {
    kept = [...kept.filter(other => other !== indexed), indexed].slice(-MAX_INDEXES)
    let room = MAX_TOOLS
    kept = kept.reverse().filter((one, place) => {
      room -= one.tools.length
      return room >= 0 || place === 0
    })
    kept.reverse()
    return indexed
  }

  function make(tools: readonly ToolItem[]): Indexed {
    const indexed = { tools, index: build(tools) }
    // The next query tries again.
    indexed.index.catch(() => {
      kept = kept.filter(other => other !== indexed)
    })
    return indexed
  }

  function indexOf(view: View): Indexed {
    const last = known.get(view)?.deref()
    if (last && kept.includes(last)) return keep(last)
    const tools = [...view.tools.values()].filter(({ key }) => !isOwn(key))
    const indexed = kept.find(one => holds(one, tools)) ?? make(tools)
    known.set(view, new WeakRef(indexed))
    return keep(indexed)
  }

  return {
    async find(view, query, limit) {
      const { tools, index } = indexOf(view)
      const mayFind = (at: number) => {
        const tool = tools[at]
        return tool !== undefined && isFound(tool, view)
      }
      const found = (await index).search(query, limit, mayFind).flatMap(at => tools[at] ?? [])
      counted(1, { outcome: found.length > 0 ? 'found' : 'nothing' })
      return found
    },
  }
}
