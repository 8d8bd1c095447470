// Every definition that the host knows, compiled once, by toolset; and what is added or removed while it runs.
// Views (core/mcp/view.ts) are cut from here.
import { StartError } from '../http/errors.ts'
import { type Report, reporting, stopAtFirst } from '../http/start-error.ts'
import type { Logger } from '../kernel/log.ts'
import type { SuggestPlugin } from '../kernel/plugin-plan.ts'
import { type CatalogItem, compileDefinition, type FaultsOf, type ItemKind } from './catalog-item.ts'
import type { ChangeBus } from './change-bus.ts'
import { type Definition, kindOf, type RuntimeHost, type RuntimeItems } from './define.ts'
import { notePluginOwn } from './isolate.ts'
import { createPublishing, type Publisher } from './publishing.ts'
import type { ToolKeyName } from './tool-key-names.ts'

export type { CatalogItem, FaultsOf, ItemKind, PromptItem, ResourceItem, ToolItem } from './catalog-item.ts'

/**
 * The toolset that every route serves: `host.tools.add` adds there by default. A name with a slash in front is one that
 * no config can give: what plugins contribute has such.
 */
export const EVERYWHERE = '/'
const isHidden = (toolset: string) => toolset.startsWith('/')

/** A toolset as an operator knows it. */
export const describeToolset = (name: string): string =>
  name === EVERYWHERE ? 'every route' : isHidden(name) ? name.slice(1) : `toolset "${name}"`

const clashWithAdded = (kind: ItemKind, key: string, where: string) => {
  const why = `one was added while the host runs, and another is defined now: rename it, or remove the one that was added`
  return new StartError(`two ${kind} are called "${key}" in ${where}: ${why}`, { exitCode: 2 })
}

export interface Catalog {
  /** Counts changes: what was cut from an older generation is out of date. */
  readonly generation: () => number
  readonly has: (toolset: string) => boolean
  readonly names: () => string[]
  /** A toolset's items; empty for a name that nothing was added to. */
  items(toolset: string): readonly CatalogItem[]
  /** Compiles a definition that no toolset holds. Throws a StartError that names `where`. */
  compile(definition: Definition, where: string): CatalogItem
  /** Adds before the host runs, to a toolset that may be new: nobody is told. */
  add(toolset: string, definition: Definition): void
  /**
   * What switches to other definitions of the config's toolsets, at once; what was added or removed while the host runs stays
   * so. Throws a StartError, and nothing has changed, where what was added clashes with the new ones at one of the addresses.
   */
  replace(
    toolsets: ReadonlyMap<string, readonly Definition[]>,
    combinations: ReadonlyArray<readonly string[]>,
  ): () => void
  /**
   * Puts some definitions of a toolset in the place of others, at once; nobody is told. Throws, and nothing has changed, where
   * one is not sound, or is called as another at an address.
   */
  exchange(toolset: string, before: readonly Definition[], after: readonly Definition[]): void
  readonly runtime: RuntimeHost
  /** One for a single call: its `settled` waits for the changes of that call. */
  openRuntime(): CallRuntime
}

/** `ctx.host` of one call. */
export interface CallRuntime extends RuntimeHost {
  /** `settled`, or undefined where there is nothing to wait for. */
  pending(): Promise<void> | undefined
}

export interface CatalogSettings {
  /** Told of every change. */
  readonly buses: readonly ChangeBus[]
  readonly log: Logger
  /** Of every definition that it takes: one that was meant to protect must not be misspelt. */
  readonly faultsOf: FaultsOf
  /** Why the operator's limits cannot apply to an item. Default: no check. */
  readonly limitFaultOf?: (item: CatalogItem) => StartError | undefined
  /** False where no plugin decides `access`: a definition that asks for it is refused. */
  readonly decidesAccess: boolean
  /** False where no plugin reads a key of tools: a tool that has it is refused. */
  readonly readsKey: (key: ToolKeyName) => boolean
  /**
   * Throws a StartError where what goes along with tools, by their keys, cannot be served beside the rest. Asked before
   * such a change is made while the host runs. Default: nothing is asked.
   */
  readonly checkViews?: () => void
  /** Names of plugins that would. */
  readonly suggest: SuggestPlugin
  /** The toolsets that some address serves together. */
  readonly combinations: () => ReadonlyArray<readonly string[]>
  /** Takes what is wrong with the toolsets, which are then without it. Default: the first stops. */
  readonly report?: Report
}

/** A catalog of these toolsets. */
export function createCatalog(
  toolsets: ReadonlyMap<string, readonly Definition[]>,
  { buses, log, faultsOf, decidesAccess, readsKey, suggest, combinations, ...settings }: CatalogSettings,
): Catalog {
  const { checkViews, limitFaultOf, report = stopAtFirst } = settings
  let generation = 0
  let hasKeys = false
  const publishing = createPublishing(buses, log)
  let sets = new Map<string, Map<string, CatalogItem>>([[EVERYWHERE, new Map()]])
  /** What was added to each toolset, or removed (undefined), while the host runs. */
  const atRuntime = new Map<string, Map<string, CatalogItem | undefined>>()
  const itemId = ({ kind, key }: Pick<CatalogItem, 'kind' | 'key'>) => `${kind} ${key}`

  function compile(definition: Definition, where: string): CatalogItem {
    const { access } = definition
    if (access !== undefined && !decidesAccess) {
      const what = `${where}: ${kindOf(definition)} "${definition.name}" asks for access "${access}"`
      const why = `${what}, but no plugin decides who has it; switch on ${suggest('access')}`
      throw new StartError(why, { of: definition, at: ['access'] })
    }
    const item = compileDefinition(definition, where, faultsOf)
    const unread = item.kind === 'tools' ? item.keys.find(key => !readsKey(key)) : undefined
    if (unread !== undefined) {
      const what = `${where}: tool "${definition.name}" has \`${unread}\`, which no plugin reads`
      throw new StartError(`${what}; switch on ${suggest(unread)}`, { of: definition, at: [unread] })
    }
    const fault = limitFaultOf?.(item)
    if (fault) throw fault
    hasKeys ||= item.kind === 'tools' && item.keys.length > 0
    return item
  }

  function putInto(items: Map<string, CatalogItem>, toolset: string, definition: Definition): CatalogItem {
    if (isHidden(toolset) && toolset !== EVERYWHERE) notePluginOwn(definition)
    const item = compile(definition, describeToolset(toolset))
    const twin = items.get(itemId(item))
    if (twin) {
      const what = `${describeToolset(toolset)} has two ${item.kind} called "${item.key}"; rename one of them`
      throw new StartError(what, { of: definition, at: ['name'], also: [{ of: twin.definition, at: ['name'] }] })
    }
    items.set(itemId(item), item)
    return item
  }

  function put(toolset: string, definition: Definition): CatalogItem {
    const items = sets.get(toolset)
    if (!items) throw new Error(`there is no toolset "${toolset}"; there are: ${names().join(', ')}`)
    return putInto(items, toolset, definition)
  }

  function noteRuntime(toolset: string, id: string, item: CatalogItem | undefined) {
    const noted = atRuntime.get(toolset) ?? new Map<string, CatalogItem | undefined>()
    atRuntime.set(toolset, noted.set(id, item))
  }

  const names = () => [...sets.keys()].filter(name => !isHidden(name))
  for (const [name, definitions] of toolsets) {
    sets.set(name, new Map())
    for (const definition of definitions) reporting(report, () => put(name, definition))
  }

  function changed(kind: ItemKind, toolset: string, { publish }: Publisher) {
    generation++
    publish({ kind, toolset: toolset === EVERYWHERE ? undefined : toolset })
  }

  /** Throws where what `change` makes of the toolsets could not be served; they are as before then. */
  function tryOut(change: () => void, undo: () => void) {
    change()
    if (!hasKeys || !checkViews) return
    // Views of another generation are built anew.
    generation++
    try {
      checkViews()
    } catch (error) {
      undo()
      generation++
      throw error
    }
  }

  /** The other toolsets that are served where this one is. */
  const neighbours = (toolset: string) =>
    combinations()
      .map(names => [EVERYWHERE, ...names])
      .filter(names => names.includes(toolset))
      .flat()
      .filter(name => name !== toolset)

  const runtimeItems = <D extends Definition>(kind: ItemKind, publisher: Publisher): RuntimeItems<D> => ({
    add(definition, { toolset = EVERYWHERE } = {}) {
      const item = put(toolset, definition)
      const takeBack = () => void sets.get(toolset)?.delete(itemId(item))
      const twin = neighbours(toolset).find(name => sets.get(name)?.has(itemId(item)))
      if (twin !== undefined) {
        takeBack()
        throw new Error(`${describeToolset(twin)} has one of the ${item.kind} called "${item.key}" on the same route`)
      }
      if (item.kind === 'tools' && item.keys.length > 0) tryOut(() => undefined, takeBack)
      noteRuntime(toolset, itemId(item), item)
      changed(item.kind, toolset, publisher)
    },
    remove(name, { toolset = EVERYWHERE } = {}) {
      const removed = sets.get(toolset)?.delete(itemId({ kind, key: name })) ?? false
      if (removed) noteRuntime(toolset, itemId({ kind, key: name }), undefined)
      if (removed) changed(kind, toolset, publisher)
      return removed
    },
  })

  function openRuntime(): CallRuntime {
    const publisher = publishing.open()
    return {
      tools: runtimeItems('tools', publisher),
      resources: runtimeItems('resources', publisher),
      prompts: runtimeItems('prompts', publisher),
      resourceUpdated: uri => publisher.publish({ kind: 'resource', uri }),
      settled: async () => publisher.pending(),
      pending: publisher.pending,
    }
  }

  /** Each id is held once where these toolsets meet. */
  function checkMeeting(next: ReadonlyMap<string, ReadonlyMap<string, CatalogItem>>, names: readonly string[]) {
    const seen = new Map<string, string>()
    for (const name of new Set([EVERYWHERE, ...names])) {
      for (const [id, { kind, key }] of next.get(name) ?? []) {
        const twin = seen.get(id)
        if (twin !== undefined) throw clashWithAdded(kind, key, `${describeToolset(twin)} and ${describeToolset(name)}`)
        seen.set(id, name)
      }
    }
  }

  return {
    replace(toolsets, combinations) {
      const next = new Map([...sets].filter(([name]) => isHidden(name)))
      for (const [name, definitions] of toolsets) {
        const items = new Map<string, CatalogItem>()
        for (const definition of definitions) putInto(items, name, definition)
        for (const [id, item] of atRuntime.get(name) ?? []) {
          if (item && items.has(id)) throw clashWithAdded(item.kind, item.key, describeToolset(name))
          if (item) items.set(id, item)
          else items.delete(id)
        }
        next.set(name, items)
      }
      for (const names of combinations) checkMeeting(next, names)
      const before = sets
      const serve = (others: typeof sets) => () => {
        sets = others
        generation++
      }
      if (atRuntime.size > 0) {
        tryOut(serve(next), serve(before))
        serve(before)()
      }
      return serve(next)
    },
    exchange(toolset, before, after) {
      const items = new Map(sets.get(toolset))
      for (const definition of before) items.delete(itemId(compile(definition, describeToolset(toolset))))
      const others = neighbours(toolset)
      for (const definition of after) {
        const item = putInto(items, toolset, definition)
        const other = others.find(name => sets.get(name)?.has(itemId(item)))
        if (other !== undefined) throw clashWithAdded(item.kind, item.key, describeToolset(other))
      }
      sets.set(toolset, items)
      generation++
    },
    generation: () => generation,
    has: toolset => !isHidden(toolset) && sets.has(toolset),
    names,
    compile,
    add(toolset, definition) {
      if (!sets.has(toolset)) sets.set(toolset, new Map())
      put(toolset, definition)
    },
    items: toolset => [...(sets.get(toolset)?.values() ?? [])],
    runtime: openRuntime(),
    openRuntime,
  }
}
