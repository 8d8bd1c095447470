// Decides whether a caller can access a task, like a call of its tool with the token of the current request.

import { LRUCache } from 'lru-cache'
import type { ToolItem } from '../../core/auth.ts'
import { defineTool, HostError, type ToolDefinition } from '../../core/index.ts'
import type { Services } from '../../core/internal.ts'
import type { Call, CatalogItem, McpRoute } from '../../core/plugin.ts'
import type { TaskSummary } from '../families/task-store/index.ts'
import { packQueue, unpackQueue } from './records.ts'

const MAX_CACHED = 10_000

function standIn(name: string): CatalogItem {
  const definition = defineTool({ name, task: 'optional', handler: () => 'gone' })
  const json = { type: 'object' } as const
  return {
    kind: 'tools',
    definition,
    key: name,
    wire: { name },
    digest: '',
    input: { json, validate: value => ({ ok: true, value }) },
    output: undefined,
    headerParams: [],
    timeout: undefined,
    concurrency: undefined,
    isolate: undefined,
    keys: ['task'],
  }
}

export type TaskPolicy = ReturnType<typeof createTaskPolicy>

export function createTaskPolicy({ itemsOf, itemsIn, slot }: Pick<Services, 'itemsOf' | 'itemsIn' | 'slot'>) {
  const known = new LRUCache<string, CatalogItem>({ max: MAX_CACHED })
  /** Keeps the access rule of a tool after its removal. */
  const remember = (queue: string, item: CatalogItem) => void known.set(queue, item)

  /** Decides about a removed tool by its last access rule, if this process knows the rule, and by its name. */
  function allowsGone({ user, offer: { route } }: Call, queue: string): boolean {
    const item = known.get(queue) ?? standIn(unpackQueue(queue).tool)
    remember(queue, item)
    return slot('access', route).audienceOf(user, route).denialOf(item) === undefined
  }

  function allows(call: Call, { queue }: Pick<TaskSummary, 'queue'>, view = call.view): boolean {
    const { tool: name, chosen, toolset } = unpackQueue(queue)
    const item = view.tools.get(name)
    if (item) {
      remember(queue, item)
      return view.denialOf(item) === undefined
    }
    const others = () => (toolset === undefined ? itemsOf(call.offer.route) : itemsIn(toolset))
    const served = () => others().some(({ kind, key }) => kind === 'tools' && key === name)
    // The tool exists, but only other callers can use it.
    return !chosen && !served() && allowsGone(call, queue)
  }

  return {
    allows,
    remember,
    allowsNow(call: Call, task: Pick<TaskSummary, 'queue'>): boolean {
      try {
        return allows(call, task, call.offer.viewFor(call.user))
      } catch (error) {
        // An offer that cannot be served now must reveal nothing.
        if (HostError.is(error)) return false
        throw error
      }
    },
    /** Returns the queue of a tool. `isOfToolset`: false if `configureSession` added the tool individually. */
    queueOf({ offer }: Call, tool: ToolDefinition) {
      const { route } = offer
      const isTool = ({ definition }: CatalogItem) => definition === tool
      const chosen = !itemsOf(route).some(isTool)
      const found = offer.toolsets().find(name => itemsIn(name).some(isTool))
      // Tools of different categories can have the same name.
      const toolset = found !== undefined && (chosen || route.categories.includes(found)) ? found : undefined
      const queue = packQueue({ route: route.path, tool: tool.name, chosen, toolset })
      return { queue, isOfToolset: !chosen || found !== undefined }
    },
    queuesOn(route: McpRoute): ReadonlyMap<string, ToolItem> {
      const queues = new Map<string, ToolItem>()
      const add = (items: readonly CatalogItem[], toolset?: string) => {
        for (const item of items) {
          if (item.kind !== 'tools' || item.definition.task === undefined) continue
          queues.set(packQueue({ route: route.path, tool: item.key, chosen: false, toolset }), item)
        }
      }
      const apart = new Set(route.categories.flatMap(itemsIn))
      add(itemsOf(route).filter(item => !apart.has(item)))
      for (const toolset of route.categories) add(itemsIn(toolset), toolset)
      return queues
    },
  }
}
