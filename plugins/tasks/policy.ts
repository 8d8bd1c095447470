// Whether a caller may have anything of a task: the same decision as for a call of its tool, with the token that asks now.
import { LRUCache } from 'lru-cache'
import type { CatalogItem } from '../../core/auth.ts'
import { type Call, defineTool, HostError, type Services, type ToolDefinition } from '../../core/index.ts'
import type { TaskSummary, View } from '../../core/transport.ts'
import { isChosen, toolOf } from './work.ts'

/** Tools whose last definition is remembered. */
const MOST_KNOWN = 10_000

/** What is told of the tools of tasks. */
export interface TaskPolicy {
  /** Whether the caller may call the task's tool; `view`: what the caller is offered. */
  allows(call: Call, task: Pick<TaskSummary, 'queue'>, view?: View): boolean
  /** The same as things are now: of a call that lasts. */
  allowsNow(call: Call, task: Pick<TaskSummary, 'queue'>): boolean
  /** Whether a tool is none of the route's own: `configureSession` offers it to whom it likes. */
  chosen(call: Call, tool: ToolDefinition): boolean
  /** Keeps what a tool asks of its callers, for when it is gone. */
  remember(queue: string, item: CatalogItem): void
}

/** What a policy is asked about where nothing of a tool is left but its name. */
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

export function createTaskPolicy({ itemsOf, slot }: Pick<Services, 'itemsOf' | 'slot'>): TaskPolicy {
  const known = new LRUCache<string, CatalogItem>({ max: MOST_KNOWN })
  const remember = (queue: string, item: CatalogItem) => void known.set(queue, item)

  /** Of a tool that is gone: by what it last asked, as far as this process knows, and by its name. */
  function allowsGone({ user, offer: { route } }: Call, queue: string): boolean {
    const item = known.get(queue) ?? standIn(toolOf(queue))
    remember(queue, item)
    return slot('access', route).audienceOf(user, route).denialOf(item) === undefined
  }

  function allows(call: Call, { queue }: Pick<TaskSummary, 'queue'>, view = call.view): boolean {
    const name = toolOf(queue)
    const item = view.tools.get(name)
    if (item) {
      remember(queue, item)
      return view.denialOf(item) === undefined
    }
    const served = () => itemsOf(call.offer.route).some(({ kind, key }) => kind === 'tools' && key === name)
    // It is there, for others.
    return !isChosen(queue) && !served() && allowsGone(call, queue)
  }

  return {
    allows,
    remember,
    allowsNow(call, task) {
      try {
        return allows(call, task, call.offer.viewFor(call.user))
      } catch (error) {
        // What cannot be served to the caller now tells nothing.
        if (HostError.is(error)) return false
        throw error
      }
    },
    chosen: ({ offer: { route } }, tool) => !itemsOf(route).some(({ definition }) => definition === tool),
  }
}
