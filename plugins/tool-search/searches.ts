// Who finds what: an index for each set of tools that some view has, made with its first query, and cut from it one for each
// set that callers may find. Tools that a caller may not find have no part in what this caller is answered.
import { hash } from 'node:crypto'
import type { ToolItem } from '../../core/auth.ts'
import { isObject, type PluginHost } from '../../core/index.ts'
import type { View } from '../../core/transport.ts'
import { Kept } from './kept.ts'
import { isOwn } from './names.ts'
import type { ToolIndex } from './tool-index.ts'

/** Bytes of the indexes that are kept: those of views, and those cut from them. */
const MAX_BYTES = { views: 64 * 2 ** 20, cut: 64 * 2 ** 20 }
/** What one tool of an index is taken for until it is made. */
const BYTES_PER_TOOL = 2_500

/** Tools that an app says are for its page alone, not for models (`_meta.ui.visibility`). */
export function isForModels(tool: ToolItem, view: View): boolean {
  const { _meta } = view.wireOf(tool)
  const visibility = isObject(_meta) && isObject(_meta['ui']) ? _meta['ui']['visibility'] : undefined
  return !Array.isArray(visibility) || visibility.includes('model')
}

/** Whether this caller finds it: what they may call, and no other. */
export const isFound = (tool: ToolItem, view: View): boolean =>
  !isOwn(tool.key) && view.denialOf(tool) === undefined && isForModels(tool, view)

/** The tools of views, and the index of them. */
interface Whole {
  readonly id: number
  readonly tools: readonly ToolItem[]
  readonly index: Promise<ToolIndex>
}

/** What is known of a view: the tools that it has, those that its callers find, and what their index is kept by. */
interface Seen {
  readonly whole: number
  readonly kept: Uint8Array
  readonly key: string
}

async function build(tools: readonly ToolItem[]): Promise<ToolIndex> {
  const { createToolIndex } = await import('./tool-index.ts')
  return createToolIndex(tools)
}

export interface Searches {
  /** What this caller may call and fits the query best, at most `limit`, the best first. */
  find(view: View, query: string, limit: number): Promise<ToolItem[]>
}

const isOf = (tools: readonly ToolItem[], wanted: readonly ToolItem[]): boolean =>
  tools.length === wanted.length && tools.every((tool, index) => tool === wanted[index])

function createWholes() {
  const wholes = new Kept<number, Whole>(MAX_BYTES.views)
  let nextId = 0

  function make(tools: readonly ToolItem[]): Whole {
    const whole = { id: nextId++, tools, index: build(tools) }
    wholes.set(whole.id, whole, tools.length * BYTES_PER_TOOL)
    whole.index.then(
      ({ bytes }) => wholes.has(whole.id) && wholes.set(whole.id, whole, bytes),
      // The next query tries again.
      () => wholes.delete(whole.id),
    )
    return whole
  }

  return {
    wholes,
    /** The one that is of these tools. */
    of(tools: readonly ToolItem[]): Whole {
      for (const [id, whole] of wholes.entries()) if (isOf(whole.tools, tools)) return wholes.get(id) ?? whole
      return make(tools)
    },
  }
}

const toolsOf = (view: View): ToolItem[] => [...view.tools.values()].filter(({ key }) => !isOwn(key))

/** Indexes of what the callers of views find. */
function createIndexes() {
  const { wholes, of } = createWholes()
  const cuts = new Kept<string, ToolIndex>(MAX_BYTES.cut)
  const seen = new WeakMap<View, Seen>()

  function look(view: View): Seen {
    const known = seen.get(view)
    // Of what is not kept any more a cut may be.
    if (known && (cuts.has(known.key) || wholes.has(known.whole))) return known
    const tools = toolsOf(view)
    const whole = of(tools)
    const kept = known?.kept ?? Uint8Array.from(tools, tool => (isFound(tool, view) ? 1 : 0))
    const now = { whole: whole.id, kept, key: `${whole.id} ${hash('sha256', kept, 'base64url')}` }
    seen.set(view, now)
    return now
  }

  async function indexOf(view: View): Promise<ToolIndex> {
    const { whole: id, kept, key } = look(view)
    const cut = cuts.get(key)
    if (cut) return cut
    const whole = await (wholes.get(id) ?? of(toolsOf(view))).index
    if (kept.every(isKept => isKept === 1)) return whole
    const made = cuts.get(key) ?? whole.restrict(kept)
    cuts.set(key, made, made.bytes)
    return made
  }

  const size = () => [...wholes.entries(), ...cuts.entries()].reduce((sum, [, { tools }]) => sum + tools.length, 0)
  return { indexOf, size }
}

export function createSearches(figures: PluginHost['figures']): Searches {
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
