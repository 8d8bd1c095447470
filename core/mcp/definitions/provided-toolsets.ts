// Toolsets of plugins: replaced as a whole, without the definitions that cannot be served.
import { isDeepStrictEqual } from 'node:util'
import { type ConfigLocation, formatPath, type Path, StartError } from '../../http/errors.ts'
import type { Logger } from '../../kernel/log.ts'
import type { CatalogItem, ItemKind } from './catalog-item.ts'
import { type Definition, kindOf } from './define.ts'

export interface ProvidedSource {
  readonly toolset: string
  /** The path to the toolset in the plugin's options or, as a source, in the config. */
  readonly at: Path
  /** Advice for duplicate names on a route, used in messages. */
  readonly fix?: string | undefined
  /** True if definitions can be added after startup. Default: true without `definitions`. */
  readonly isLate: boolean
  /** The state of its source in one line, for the start page and `mcp-host explain`. */
  readonly describe?: (() => string) | undefined
  /** Instructions for the model, added to those of the config. Callers who can list none of its items do not get them. */
  readonly instructions?: (() => string | undefined) | undefined
}

export interface ClashingItem {
  readonly where: string
  readonly item: CatalogItem
  readonly source?: ProvidedSource | undefined
}

const writtenAt = ({ item, source }: ClashingItem): ConfigLocation =>
  source ? { at: source.at } : { of: item.definition, at: ['name'] }

const describeClashing = ({ where, source }: ClashingItem) => (source ? `${where} (${formatPath(source.at)})` : where)

export function nameClash(first: ClashingItem, second: ClashingItem): StartError {
  const { kind, key } = second.item
  const fix = second.source?.fix ?? first.source?.fix ?? 'rename one of them'
  const places = [...new Set([first, second].map(describeClashing))].join(' and in ')
  return new StartError('MH1107', `two ${kind} are called "${key}": in ${places}; ${fix}`, {
    ...writtenAt(second),
    also: [writtenAt(first)],
  })
}

/** Definitions of a plugin, from `host.toolset`. */
export interface ServedToolset {
  /**
   * Replaces all of them at once, after set-up. Clients with changed lists are notified. Definitions that cannot be served are
   * withheld and logged; the others are served. Before the host serves, a duplicate name on a route is a StartError.
   */
  replace(definitions: readonly Definition[]): void
  /** The reasons for withheld definitions, by kind and name, such as `tools search`. */
  readonly withheld: ReadonlyMap<string, string>
}

type Items = ReadonlyMap<string, CatalogItem>

interface CatalogState {
  readonly log: Logger
  readonly describe: (toolset: string) => string
  items(toolset: string): Items
  compile(definition: Definition, toolset: string): CatalogItem
  combinations(): ReadonlyArray<{ readonly toolsets: readonly string[]; readonly extra: readonly CatalogItem[] }>
  readonly everywhere: string
  add(toolset: string, definition: Definition): CatalogItem
  put(toolset: string, items: Items): void
  /** Throws a StartError, without a change, if a combination cannot be served. */
  exchange(toolset: string, items: Items): void
  publish(kind: ItemKind, toolset: string): void
}

interface Provided {
  readonly toolset: string
  readonly source: ProvidedSource | undefined
  wanted: readonly Definition[]
  served: Items
  withheld: ReadonlyMap<string, string>
  /** True if a name is in use elsewhere on a route, and can become free. */
  clashes: boolean
}

export const itemId = ({ kind, key }: Pick<CatalogItem, 'kind' | 'key'>) => `${kind} ${key}`

function idOf(definition: Definition, index: number): string {
  const kind = kindOf(definition)
  if (kind === undefined) return `definition ${index}`
  const { name, uri = name, uriTemplate = uri } = definition as { name: string; uri?: string; uriTemplate?: string }
  return `${kind}s ${uriTemplate}`
}

export const LIST_KINDS = ['tools', 'resources', 'prompts'] as const satisfies readonly ItemKind[]

function isListedAlike(one: CatalogItem | undefined, other: CatalogItem | undefined): boolean {
  if (one === other) return true
  if (!one || !other || one.kind !== other.kind) return false
  if (one.digest !== other.digest && !isDeepStrictEqual(one.wire, other.wire)) return false
  const { definition: before } = one
  const { definition: after } = other
  if (before.access !== after.access || before.visibility !== after.visibility) return false
  if (one.kind !== 'tools' || other.kind !== 'tools') return true
  const values = ({ keys, definition }: typeof one) => keys.map(key => [key, Reflect.get(definition, key)])
  return isDeepStrictEqual(values(one), values(other))
}

function changedKinds(before: Items, after: Items): ItemKind[] {
  const ids = new Set([...before.keys(), ...after.keys()])
  const changed = new Set<ItemKind>()
  for (const id of ids) {
    const [one, other] = [before.get(id), after.get(id)]
    const { kind } = (one ?? other) as CatalogItem
    if (!changed.has(kind) && !isListedAlike(one, other)) changed.add(kind)
  }
  return LIST_KINDS.filter(kind => changed.has(kind))
}

const isSame = (one: Items, other: Items) =>
  one.size === other.size && [...one].every(([id, item]) => other.get(id) === item)

const MAX_LOGGED = 5

export function createProvided(state: CatalogState) {
  const all: Provided[] = []
  const sources = new Map<string, ProvidedSource>()
  let isOpen = false
  let isRetrying = false

  /** The items that are served together with a toolset on some route. */
  function itemsNextTo(toolset: string): Map<string, readonly [toolset: string, item: CatalogItem]> {
    const found = new Map<string, readonly [toolset: string, item: CatalogItem]>()
    const add = (name: string, item: CatalogItem) => void found.set(itemId(item), [name, item])
    const combinations = state.combinations().filter(({ toolsets }) => toolsets.includes(toolset))
    const names = new Set(combinations.flatMap(({ toolsets }) => toolsets).concat(state.everywhere))
    names.delete(toolset)
    for (const name of names) for (const item of state.items(name).values()) add(name, item)
    for (const { extra } of combinations) for (const item of extra) add('', item)
    return found
  }

  function logWithheld({ toolset, withheld }: Provided, before: ReadonlyMap<string, string>) {
    const added = [...withheld].filter(([id, reason]) => before.get(id) !== reason)
    if (added.length === 0) return
    state.log.warn(
      { code: 'MH1115', toolset, withheld: withheld.size, reasons: Object.fromEntries(added.slice(0, MAX_LOGGED)) },
      'some definitions of a toolset cannot be served and are left out',
    )
  }

  function compileAll({ toolset }: Provided, definitions: readonly Definition[], other: Items) {
    const next = new Map<string, CatalogItem>()
    const withheld = new Map<string, string>()
    for (const [index, definition] of definitions.entries()) {
      try {
        const item = state.compile(definition, toolset)
        const id = itemId(item)
        if (next.has(id) || other.has(id)) withheld.set(id, `two ${item.kind} are called "${item.key}"`)
        else next.set(id, item)
      } catch (error) {
        if (!(error instanceof StartError)) throw error
        withheld.set(idOf(definition, index), error.message)
      }
    }
    return { next, withheld }
  }

  const describe = (toolset: string) => (toolset === '' ? 'configureSession' : state.describe(toolset))

  function removeClashes({ toolset, source }: Provided, next: Map<string, CatalogItem>, withheld: Map<string, string>) {
    const others = itemsNextTo(toolset)
    let clashes = false
    for (const [id, item] of next) {
      const other = others.get(id)
      if (!other) continue
      const [name, twin] = other
      const first = { where: describe(name), item: twin, source: sources.get(name) }
      const clash = nameClash(first, { where: describe(toolset), item, source })
      if (!isOpen) throw clash
      clashes = true
      next.delete(id)
      withheld.set(id, clash.message)
    }
    return clashes
  }

  function exchange(
    { toolset }: Provided,
    other: Items,
    next: Map<string, CatalogItem>,
    withheld: Map<string, string>,
  ) {
    for (;;) {
      try {
        return state.exchange(toolset, new Map([...other, ...next]))
      } catch (error) {
        if (!(error instanceof StartError)) throw error
        const blamed = [error.written, ...error.also].map(({ of }) => of)
        const faulty = [...next].filter(([, { definition }]) => blamed.includes(definition))
        if (faulty.length === 0) throw error
        for (const [id] of faulty) {
          next.delete(id)
          withheld.set(id, error.message)
        }
      }
    }
  }

  function replace(own: Provided, definitions: readonly Definition[]) {
    const { toolset } = own
    const other = new Map(state.items(toolset))
    for (const [id, item] of own.served) if (other.get(id) === item) other.delete(id)
    const { next, withheld } = compileAll(own, definitions, other)
    const clashes = removeClashes(own, next, withheld)
    const before = own.served
    if (!isSame(before, next)) exchange(own, other, next, withheld)
    const reasons = own.withheld
    Object.assign(own, { wanted: definitions, served: next, withheld, clashes })
    logWithheld(own, reasons)
    for (const kind of changedKinds(before, next)) state.publish(kind, toolset)
    if ([...before.keys()].some(id => !next.has(id))) retry()
  }

  function retry() {
    if (isRetrying) return
    isRetrying = true
    try {
      for (const own of all) if (own.clashes) replace(own, own.wanted)
    } finally {
      isRetrying = false
    }
  }

  /** Adds definitions before startup. Names are compared later, because not all toolsets are present yet. */
  function addFirst(own: Provided, definitions: readonly Definition[]) {
    const { toolset } = own
    if (!own.source) {
      own.served = new Map(
        definitions.map(definition => state.add(toolset, definition)).map(item => [itemId(item), item]),
      )
      return
    }
    const other = state.items(toolset)
    const { next, withheld } = compileAll(own, definitions, other)
    state.put(toolset, new Map([...other, ...next]))
    Object.assign(own, { served: next, withheld })
    logWithheld(own, new Map())
  }

  return {
    retry,
    open() {
      isOpen = true
    },
    sourceOf: (toolset: string) => sources.get(toolset),
    withheldIn: (toolset: string): ReadonlyMap<string, string> =>
      new Map(all.filter(own => own.toolset === toolset).flatMap(({ withheld }) => [...withheld])),
    isAny: () => sources.size > 0,
    provide(toolset: string, definitions: readonly Definition[], source?: ProvidedSource): ServedToolset {
      const none = new Map()
      const own: Provided = { toolset, source, wanted: definitions, served: none, withheld: none, clashes: false }
      if (source) sources.set(toolset, source)
      addFirst(own, definitions)
      all.push(own)
      return {
        replace: others => replace(own, others),
        get withheld() {
          return own.withheld
        },
      }
    },
  }
}
