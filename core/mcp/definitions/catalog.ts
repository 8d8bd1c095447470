// The catalog: compiled definitions per toolset, and their changes at startup, at run time and on reload.
import { errorText, type Report, StartError, stopAtFirst, tryReport } from '../../http/errors.ts'
import type { Logger } from '../../kernel/log.ts'
import type { SuggestPlugin } from '../../kernel/plugin-plan.ts'
import type { CompiledRoute } from '../routes/routes.ts'
import { type CatalogItem, compileDefinition, type ItemKind, type ProblemsOf } from './catalog-item.ts'
import type { Change, ChangeBus } from './change-bus.ts'
import { type Definition, kindOf, labelOf, type RuntimeHost, type RuntimeItems } from './define.ts'
import { warningsOf } from './definition-warnings.ts'
import { markPluginTool } from './isolation-limits.ts'
import { createProvided, itemId, nameClash } from './provided-toolsets.ts'

export type { CatalogItem, ItemKind, ProblemsOf, PromptItem, ResourceItem, ToolItem } from './catalog-item.ts'

/** The toolset of every route. The leading slash, which configs cannot use, also marks toolsets of plugins. */
export const EVERYWHERE = '/'
const isHidden = (toolset: string) => toolset.startsWith('/')

export const describeToolset = (name: string): string =>
  name === EVERYWHERE ? 'every route' : isHidden(name) ? name.slice(1) : `toolset "${name}"`

const ADDED = 'one was added at run time, and another is defined now: rename it, or remove the one that was added'
const causedByAddition = (cause: StartError) =>
  new StartError(cause.code, `${cause.message}: ${ADDED}`, { exitCode: 2, cause })

export interface Combination {
  readonly route: CompiledRoute
  readonly toolsets: readonly string[]
  readonly extra: readonly CatalogItem[]
}

export type Catalog = ReturnType<typeof createCatalog>

export interface CallRuntime extends RuntimeHost {
  pending(): Promise<void> | undefined
}

interface CatalogSettings {
  readonly buses: readonly ChangeBus[]
  readonly log: Logger
  readonly problemsOf: ProblemsOf
  readonly limitProblemOf?: (item: CatalogItem) => StartError | undefined
  readonly decidesAccess: boolean
  readonly readsKey: (key: string) => boolean
  readonly fixForKey: (key: string) => string
  readonly suggest: SuggestPlugin
  readonly combinations: () => readonly Combination[]
  /** Throws a StartError if a combination cannot be served. Called before each run-time change. */
  readonly check: (combination: Combination) => void
  /** Receives faults of definitions, which are left out. Default: throws the first one. */
  readonly report?: Report
}

export function createCatalog(toolsets: ReadonlyMap<string, readonly Definition[]>, settings: CatalogSettings) {
  const { buses, log, problemsOf, limitProblemOf, combinations, check, report = stopAtFirst } = settings
  let generation = 0
  const openPublisher = createPublishing(buses, log)
  let sets = new Map<string, Map<string, CatalogItem>>([[EVERYWHERE, new Map()]])
  const atRuntime = new Map<string, Map<string, CatalogItem | undefined>>()
  let isReloading = false
  const ownPublisher = openPublisher()
  const provided = createProvided({
    log,
    everywhere: EVERYWHERE,
    describe: describeToolset,
    items: toolset => sets.get(toolset) ?? new Map(),
    compile: (definition, toolset) => compileFor(toolset, definition),
    combinations,
    add(toolset, definition) {
      if (!sets.has(toolset)) sets.set(toolset, new Map())
      const item = putInto(itemsIn(toolset), toolset, definition)
      warnOnce(item, describeToolset(toolset))
      return item
    },
    put: (toolset, items) => void sets.set(toolset, new Map(items)),
    exchange(toolset, items) {
      exchangeItems(toolset, new Map(items))
      generation++
    },
    publish(kind, toolset) {
      if (!isReloading) ownPublisher.publish({ kind, toolset })
    },
  })

  function compile(definition: Definition, where: string): CatalogItem {
    const { access } = definition
    if (access !== undefined && !settings.decidesAccess) {
      const what = `${where}: ${kindOf(definition)} "${definition.name}" requires access "${access}"`
      const why = `${what}, but no plugin enforces access; enable ${settings.suggest('access')}`
      throw new StartError('MH1110', why, { of: definition, at: ['access'] })
    }
    const item = compileDefinition(definition, where, problemsOf)
    const unread = item.kind === 'tools' ? item.keys.find(key => !settings.readsKey(key)) : undefined
    if (unread !== undefined) {
      const what = `${where}: tool "${definition.name}" has \`${unread}\`, which no plugin reads`
      throw new StartError('MH1109', `${what}; ${settings.fixForKey(unread)}`, { of: definition, at: [unread] })
    }
    const error = limitProblemOf?.(item)
    if (error) throw error
    return item
  }

  const isProvided = (toolset: string) => isHidden(toolset) || provided.sourceOf(toolset) !== undefined

  function compileFor(toolset: string, definition: Definition): CatalogItem {
    if (isProvided(toolset) && toolset !== EVERYWHERE) markPluginTool(definition)
    return compile(definition, describeToolset(toolset))
  }

  function putInto(items: Map<string, CatalogItem>, toolset: string, definition: Definition): CatalogItem {
    const item = compileFor(toolset, definition)
    const twin = items.get(itemId(item))
    if (twin) throw clashIn(toolset, twin, item)
    items.set(itemId(item), item)
    return item
  }

  const clashIn = (toolset: string, twin: CatalogItem, item: CatalogItem) => {
    const where = describeToolset(toolset)
    return nameClash({ where, item: twin }, { where, item })
  }

  function itemsIn(toolset: string): Map<string, CatalogItem> {
    const items = sets.get(toolset)
    if (!items) throw new Error(`there is no toolset "${toolset}"; available: ${names().join(', ')}`)
    return items
  }

  const warned = new WeakSet<Definition>()
  function warnOnce(item: CatalogItem, where: string) {
    if (warned.has(item.definition)) return
    warned.add(item.definition)
    for (const { why } of warningsOf(item))
      log.warn({ code: 'MH1106' }, `${where}: ${labelOf(item.definition)}: ${why}`)
  }

  function noteRuntime(toolset: string, id: string, item: CatalogItem | undefined) {
    const noted = atRuntime.get(toolset) ?? new Map<string, CatalogItem | undefined>()
    atRuntime.set(toolset, noted.set(id, item))
  }

  const names = () => [...sets.keys()].filter(name => !isHidden(name))
  for (const [name, definitions] of toolsets) {
    sets.set(name, new Map())
    for (const definition of definitions) {
      warned.add(definition)
      tryReport(report, () => putInto(itemsIn(name), name, definition))
    }
  }

  function changed(kind: ItemKind, toolset: string, { publish }: Publisher) {
    generation++
    publish({ kind, toolset: toolset === EVERYWHERE ? undefined : toolset })
  }

  function tryOut(next: typeof sets, combinations: readonly Combination[]) {
    const before = sets
    function errorOf(candidate: typeof sets, combination: Combination): unknown {
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
      const error = errorOf(next, combination)
      // A combination that a reload already broke must not block this change.
      if (error !== undefined && errorOf(before, combination) === undefined) throw error
    }
  }

  function exchangeItems(toolset: string, items: Map<string, CatalogItem>) {
    const next = new Map(sets).set(toolset, items)
    const affected = combinations().filter(({ toolsets }) => toolset === EVERYWHERE || toolsets.includes(toolset))
    tryOut(next, affected)
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
      const id = itemId({ kind, key: name })
      if (!sets.get(toolset)?.delete(id)) return false
      noteRuntime(toolset, id, undefined)
      changed(kind, toolset, publisher)
      provided.retry()
      return true
    },
  })

  function openRuntime(): CallRuntime {
    const publisher = openPublisher()
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
    /** Returns a function that applies the new toolsets. Throws a StartError, without a change, for a conflict. */
    replace(toolsets: ReadonlyMap<string, readonly Definition[]>, combinations: readonly Combination[]) {
      const next = new Map([...sets].filter(([name]) => isProvided(name)))
      for (const [name, definitions] of toolsets) {
        const items = new Map<string, CatalogItem>()
        for (const definition of definitions) {
          warned.add(definition)
          putInto(items, name, definition)
        }
        for (const [id, item] of atRuntime.get(name) ?? []) {
          const twin = items.get(id)
          if (item && twin) throw causedByAddition(clashIn(name, twin, item))
          if (item) items.set(id, item)
          else items.delete(id)
        }
        next.set(name, items)
      }
      if (atRuntime.size > 0 || provided.isAny()) {
        try {
          tryOut(next, combinations)
        } catch (error) {
          if (!(error instanceof StartError)) throw error
          throw causedByAddition(error)
        }
      }
      return () => {
        sets = next
        generation++
      }
    },
    provide: provided.provide,
    sourceOf: provided.sourceOf,
    withheldIn: provided.withheldIn,
    /** Ends startup: from now on, definitions with duplicate names are withheld instead of an error. */
    open: provided.open,
    /** Runs `apply` without change notifications, for reloads, which notify clients themselves. */
    reloading<Result>(apply: () => Result): Result {
      isReloading = true
      try {
        return apply()
      } finally {
        provided.retry()
        isReloading = false
      }
    },
    generation: () => generation,
    has: (toolset: string) => !isHidden(toolset) && sets.has(toolset),
    names,
    /** Compiles a definition without a toolset and logs its warnings once. Throws a StartError that names `where`. */
    compile(definition: Definition, where: string): CatalogItem {
      const item = compile(definition, where)
      warnOnce(item, where)
      return item
    },
    items: (toolset: string): readonly CatalogItem[] => [...(sets.get(toolset)?.values() ?? [])],
    runtime: openRuntime(),
    openRuntime,
  }
}

interface Publisher {
  readonly publish: (change: Change) => void
  readonly pending: () => Promise<void> | undefined
}

function createPublishing(buses: readonly ChangeBus[], log: Logger): () => Publisher {
  const logLate = (err: unknown) =>
    log.warn(
      { code: 'MH1430', reason: errorText(err) },
      'the change bus does not acknowledge changes: clients can be notified late',
    )

  return () => {
    const open = new Set<Promise<void>>()

    function publishOn(bus: ChangeBus, change: Change) {
      try {
        const publishing = bus.publish(change)
        if (publishing === undefined) return
        const acknowledged: Promise<void> = Promise.resolve(publishing)
          .catch(logLate)
          .finally(() => open.delete(acknowledged))
        open.add(acknowledged)
      } catch (err) {
        logLate(err)
      }
    }

    return {
      publish(change) {
        for (const bus of buses) publishOn(bus, change)
      },
      pending: () => (open.size === 0 ? undefined : Promise.all(open).then(() => undefined)),
    }
  }
}
