// Every definition that the host knows, compiled once, by toolset; and what is added or removed while it runs.
// Views (core/mcp/view.ts) are cut from here.
import { type Report, reporting, StartError, stopAtFirst } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { SuggestPlugin } from '../kernel/plugin-plan.ts'
import { type CatalogItem, compileDefinition, type FaultsOf, type ItemKind } from './catalog-item.ts'
import type { ChangeBus } from './change-bus.ts'
import { type Definition, kindOf, labelOf, type RuntimeHost, type RuntimeItems } from './define.ts'
import { warningsOf } from './definition-warnings.ts'
import { notePluginOwn } from './isolate.ts'
import { createPublishing, type Publisher } from './publishing.ts'
import type { CompiledRoute } from './routes.ts'
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

const ADDED =
  'one was added while the host runs, and another is defined now: rename it, or remove the one that was added'

/** Toolsets and single definitions that are served together on a route. */
export interface Combination {
  readonly route: CompiledRoute
  readonly toolsets: readonly string[]
  /** Definitions that `configureSession` added. */
  readonly extra: readonly CatalogItem[]
}

export interface Catalog {
  /** Counts changes: what was cut from an older generation is out of date. */
  readonly generation: () => number
  readonly has: (toolset: string) => boolean
  readonly names: () => string[]
  /** A toolset's items; empty for a name that nothing was added to. */
  items(toolset: string): readonly CatalogItem[]
  /** Compiles a definition that no toolset holds. Throws a StartError that names `where`. Logs its warnings once. */
  compile(definition: Definition, where: string): CatalogItem
  /** Adds before the host runs, to a toolset that may be new: nobody is told. */
  add(toolset: string, definition: Definition): void
  /**
   * What switches to other definitions of the config's toolsets, at once; what was added or removed while the host runs stays
   * so. Throws a StartError, and nothing has changed, where what was added cannot be served with the new ones in one of
   * `combinations`.
   */
  replace(toolsets: ReadonlyMap<string, readonly Definition[]>, combinations: readonly Combination[]): () => void
  /**
   * Puts some definitions of a toolset in the place of others, at once; nobody is told. Throws a StartError, and nothing has
   * changed, where one of them cannot be served.
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
  /** Names of plugins that would. */
  readonly suggest: SuggestPlugin
  /** Everything that is served together now. */
  readonly combinations: () => readonly Combination[]
  /** Throws a StartError where a combination cannot be served. Called before any change at run time. */
  readonly check: (combination: Combination) => void
  /** Takes what is wrong with the toolsets, which are then without it. Default: the first stops. */
  readonly report?: Report
}

/** A catalog of these toolsets. */
export function createCatalog(
  toolsets: ReadonlyMap<string, readonly Definition[]>,
  {
    buses,
    log,
    faultsOf,
    limitFaultOf,
    decidesAccess,
    readsKey,
    suggest,
    combinations,
    check,
    report = stopAtFirst,
  }: CatalogSettings,
): Catalog {
  let generation = 0
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

  function itemsIn(toolset: string): Map<string, CatalogItem> {
    const items = sets.get(toolset)
    if (!items) throw new Error(`there is no toolset "${toolset}"; there are: ${names().join(', ')}`)
    return items
  }

  /** Definitions whose warnings were logged, here or before the host was built. */
  const told = new WeakSet<Definition>()
  function warnOnce(item: CatalogItem, where: string) {
    if (told.has(item.definition)) return
    told.add(item.definition)
    for (const { why } of warningsOf(item)) log.warn({}, `${where}: ${labelOf(item.definition)}: ${why}`)
  }

  function noteRuntime(toolset: string, id: string, item: CatalogItem | undefined) {
    const noted = atRuntime.get(toolset) ?? new Map<string, CatalogItem | undefined>()
    atRuntime.set(toolset, noted.set(id, item))
  }

  const names = () => [...sets.keys()].filter(name => !isHidden(name))
  for (const [name, definitions] of toolsets) {
    sets.set(name, new Map())
    for (const definition of definitions) {
      told.add(definition)
      reporting(report, () => putInto(itemsIn(name), name, definition))
    }
  }

  function changed(kind: ItemKind, toolset: string, { publish }: Publisher) {
    generation++
    publish({ kind, toolset: toolset === EVERYWHERE ? undefined : toolset })
  }

  /** Throws where the next toolsets cannot be served in one of these combinations. */
  function tryOut(next: typeof sets, combinations: readonly Combination[]) {
    const before = sets
    function faultOf(candidate: typeof sets, combination: Combination): unknown {
      sets = candidate
      try {
        check(combination)
        return undefined
      } catch (error) {
        return error
      } finally {
        sets = before
      }
    }
    for (const combination of combinations) {
      const fault = faultOf(next, combination)
      // A reload may have broken what `configureSession` chose for a caller: that is no fault of this change.
      if (fault !== undefined && faultOf(before, combination) === undefined) throw fault
    }
  }

  /** Puts other items in the place of a toolset's, where everything that serves the toolset can serve them. */
  function exchangeItems(toolset: string, items: Map<string, CatalogItem>) {
    const next = new Map(sets).set(toolset, items)
    tryOut(
      next,
      combinations().filter(({ toolsets }) => toolset === EVERYWHERE || toolsets.includes(toolset)),
    )
    sets = next
  }

  const runtimeItems = <D extends Definition>(kind: ItemKind, publisher: Publisher): RuntimeItems<D> => ({
    add(definition, { toolset = EVERYWHERE } = {}) {
      const items = new Map(itemsIn(toolset))
      const item = putInto(items, toolset, definition)
      exchangeItems(toolset, items)
      warnOnce(item, describeToolset(toolset))
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

  return {
    replace(toolsets, combinations) {
      const next = new Map([...sets].filter(([name]) => isHidden(name)))
      for (const [name, definitions] of toolsets) {
        const items = new Map<string, CatalogItem>()
        for (const definition of definitions) {
          told.add(definition)
          putInto(items, name, definition)
        }
        for (const [id, item] of atRuntime.get(name) ?? []) {
          if (item && items.has(id)) {
            const what = `two ${item.kind} are called "${item.key}" in ${describeToolset(name)}`
            throw new StartError(`${what}: ${ADDED}`, { exitCode: 2 })
          }
          if (item) items.set(id, item)
          else items.delete(id)
        }
        next.set(name, items)
      }
      // Without these, the new config was checked when it was built.
      if (atRuntime.size > 0) {
        try {
          tryOut(next, combinations)
        } catch (error) {
          if (!(error instanceof StartError)) throw error
          throw new StartError(`${error.message}: ${ADDED}`, { exitCode: 2, cause: error })
        }
      }
      return () => {
        sets = next
        generation++
      }
    },
    exchange(toolset, before, after) {
      const items = new Map(sets.get(toolset))
      for (const definition of before) items.delete(itemId(compile(definition, describeToolset(toolset))))
      for (const definition of after) putInto(items, toolset, definition)
      exchangeItems(toolset, items)
      generation++
    },
    generation: () => generation,
    has: toolset => !isHidden(toolset) && sets.has(toolset),
    names,
    compile(definition, where) {
      const item = compile(definition, where)
      warnOnce(item, where)
      return item
    },
    add(toolset, definition) {
      if (!sets.has(toolset)) sets.set(toolset, new Map())
      warnOnce(putInto(itemsIn(toolset), toolset, definition), describeToolset(toolset))
    },
    items: toolset => [...(sets.get(toolset)?.values() ?? [])],
    runtime: openRuntime(),
    openRuntime,
  }
}
