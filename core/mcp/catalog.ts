// Every definition that the host knows, compiled once, by toolset; and what is added or removed while it runs.
// Views (core/mcp/view.ts) are cut from here.
import { createHash } from 'node:crypto'
import { errorText, StartError } from '../http/errors.ts'
import { type Report, reporting, stopAtFirst } from '../http/start-error.ts'
import type { Logger } from '../kernel/log.ts'
import type { SuggestPlugin } from '../kernel/plugin-plan.ts'
import type { ChangeBus } from './change-bus.ts'
import {
  type Definition,
  kindOf,
  labelOf,
  type PromptDefinition,
  type ResourceDefinition,
  type RuntimeHost,
  type RuntimeItems,
  type ToolDefinition,
} from './define.ts'
import { createPublishing, type Publisher } from './publishing.ts'
import { collectHeaderParams, type HeaderParam } from './schema/header-params.ts'
import { type CompiledSchema, compileSchema } from './schema/schema.ts'
import { type CompiledUriTemplate, compileUriTemplate } from './schema/uri-template.ts'
import { parseDuration } from './units.ts'

interface Item<D extends Definition> {
  readonly definition: D
  /** What identifies it among its kind: a name, a URI or a URI template. */
  readonly key: string
  /** As clients see it in a list. */
  readonly wire: Readonly<Record<string, unknown>>
  /** Changes when the definition or its handler's source does; the same on every node of one release. */
  readonly digest: string
}
/** A tool, compiled. */
export interface ToolItem extends Item<ToolDefinition> {
  readonly kind: 'tools'
  readonly input: CompiledSchema
  readonly output: CompiledSchema | undefined
  readonly headerParams: readonly HeaderParam[]
  /** Milliseconds; undefined: the host's default. */
  readonly timeout: number | undefined
}
/** A resource or a family of them, compiled. */
export interface ResourceItem extends Item<ResourceDefinition> {
  readonly kind: 'resources'
  readonly template: CompiledUriTemplate | undefined
}
/** A prompt, compiled. */
export interface PromptItem extends Item<PromptDefinition> {
  readonly kind: 'prompts'
}
/** A definition, compiled: what lists show and access is decided about. */
export type CatalogItem = ToolItem | ResourceItem | PromptItem
/** As the lists of the protocol are called. */
export type ItemKind = CatalogItem['kind']

/** Without the fields that are undefined, so that nothing empty travels. */
const defined = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const digestOf = (wire: object, definition: Definition) =>
  createHash('sha256')
    .update(`${JSON.stringify(wire)}\n${definition.handler}`)
    .digest('base64url')
    .slice(0, 22)

function compileTool(definition: ToolDefinition): ToolItem {
  const { name, title, description, icons, annotations, _meta, timeout } = definition
  const input = compileSchema(definition.input, 'input')
  const output = definition.output && compileSchema(definition.output, 'output')
  const schemas = { inputSchema: input.json, outputSchema: output?.json }
  const wire = defined({ name, title, description, ...schemas, annotations, icons, _meta })
  return {
    kind: 'tools',
    definition,
    key: name,
    wire,
    digest: digestOf(wire, definition),
    input,
    output,
    headerParams: collectHeaderParams(input.json),
    timeout: timeout === undefined ? undefined : parseDuration(timeout),
  }
}

function compileResource(definition: ResourceDefinition): ResourceItem {
  const { uri, uriTemplate, name, title, description, mimeType, size, icons, annotations, _meta } = definition
  const key = uri ?? uriTemplate
  if (key === undefined || (uri !== undefined && uriTemplate !== undefined)) {
    throw new Error('give it either `uri` or `uriTemplate`')
  }
  if (uri !== undefined && !URL.canParse(uri)) throw new Error(`its uri "${uri}" is not an absolute URI`)
  const template = uriTemplate === undefined ? undefined : compileUriTemplate(uriTemplate)
  const stray = Object.keys(definition.complete ?? {}).find(name => !template?.variables.includes(name))
  if (stray !== undefined) throw new Error(`\`complete.${stray}\` names no variable of its uriTemplate`)
  const wire = defined({ uri, uriTemplate, name, title, description, mimeType, size, annotations, icons, _meta })
  return { kind: 'resources', definition, key, wire, digest: digestOf(wire, definition), template }
}

function compilePrompt(definition: PromptDefinition): PromptItem {
  const { name, title, description, icons, _meta } = definition
  const list = Object.entries(definition.arguments ?? {}).map(([argument, { title, description, required }]) =>
    defined({ name: argument, title, description, required }),
  )
  const wire = defined({ name, title, description, arguments: list.length > 0 ? list : undefined, icons, _meta })
  return { kind: 'prompts', definition, key: name, wire, digest: digestOf(wire, definition) }
}

/** What is wrong with the keys of a definition, a line each. */
export type FaultsOf = (definition: Definition) => readonly string[]

const compiled = new WeakMap<Definition, CatalogItem>()

/** Compiles a definition, once for each object. Throws a StartError that names it and says what is wrong. */
export function compileDefinition(definition: Definition, where: string, faultsOf: FaultsOf): CatalogItem {
  const known = compiled.get(definition)
  if (known) return known
  const kind = kindOf(definition)
  if (kind === undefined) {
    throw new StartError(`${where}: not a definition; make it with defineTool, defineResource or definePrompt`, {
      exitCode: 2,
    })
  }
  const label = `${where}: ${labelOf(definition)}`
  const faults = faultsOf(definition)
  if (faults.length > 0) throw new StartError(`${label}: ${faults.join('\n')}`, { of: definition })
  try {
    const item =
      kind === 'tool'
        ? compileTool(definition as ToolDefinition)
        : kind === 'resource'
          ? compileResource(definition as ResourceDefinition)
          : compilePrompt(definition as PromptDefinition)
    compiled.set(definition, item)
    return item
  } catch (cause) {
    // A fault of a schema stands under the key of that name.
    const [, role] = /^its (input|output)\b/.exec(errorText(cause)) ?? []
    throw new StartError(`${label}: ${errorText(cause)}`, { cause, of: definition, at: role ? [role] : [] })
  }
}

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
  /** False where no plugin decides `access`: a definition that asks for it is refused. */
  readonly decidesAccess: boolean
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
  { buses, log, faultsOf, decidesAccess, suggest, combinations, report = stopAtFirst }: CatalogSettings,
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
    return compileDefinition(definition, where, faultsOf)
  }

  function putInto(items: Map<string, CatalogItem>, toolset: string, definition: Definition): CatalogItem {
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
      const twin = neighbours(toolset).find(name => sets.get(name)?.has(itemId(item)))
      if (twin !== undefined) {
        sets.get(toolset)?.delete(itemId(item))
        throw new Error(`${describeToolset(twin)} has one of the ${item.kind} called "${item.key}" on the same route`)
      }
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
      return () => {
        sets = next
        generation++
      }
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
