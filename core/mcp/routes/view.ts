// Views: the cached items, capabilities and serialized list pages of a route for a class of callers.

import { LRUCache } from 'lru-cache'
import { HostError, StartError, stopAtFirst } from '../../http/errors.ts'
import { getOrCreate } from '../../http/get-or-create.ts'
import { lruLimit } from '../../http/lru-limit.ts'
import {
  type Catalog,
  type CatalogItem,
  describeToolset,
  EVERYWHERE,
  type ItemKind,
  type PromptItem,
  type ResourceItem,
  type ToolItem,
} from '../definitions/catalog.ts'
import { type ClashingItem, itemId, LIST_KINDS, nameClash } from '../definitions/provided-toolsets.ts'
import { digestsOfKeys, type ListedKeys, resourcesOfKeys, wireWithKeys } from '../definitions/tool-keys.ts'
import { SerializedResult } from '../wire/message.ts'
import { type Implementation, META, type ServerCapabilities } from '../wire/protocol.ts'
import type { RevisionRules } from '../wire/revisions.ts'
import type { Audience, Denial } from './access-decider.ts'
import type { ServerSettings } from './configure-session.ts'

export { LIST_KINDS }

type ListName = 'tools' | 'resources' | 'resourceTemplates' | 'prompts'

/** The items that a route serves to a class of callers. */
export interface View {
  readonly serverInfo: Implementation
  /** The `_meta` of every 2026-07-28 result, as JSON. */
  readonly metaJson: string
  readonly instructions: string | undefined
  readonly capabilities: ServerCapabilities
  readonly tools: ReadonlyMap<string, ToolItem>
  readonly resources: ReadonlyMap<string, ResourceItem>
  readonly resourcesByNormalUri: ReadonlyMap<string, ResourceItem>
  readonly templates: readonly ResourceItem[]
  readonly listing: readonly ResourceItem[]
  readonly prompts: ReadonlyMap<string, PromptItem>
  readonly restricted: CatalogItem | undefined
  /** `public` if every caller of the route gets the same lists. */
  readonly cacheScope: 'public' | 'private'
  denialOf(item: CatalogItem): Denial | undefined
  /** Callers with access can use unlisted items by name. */
  isListed(item: CatalogItem): boolean
  isUnlisted(item: CatalogItem): boolean
  digestsOf(tool: ToolItem): Readonly<Record<string, string>>
  wireOf(item: CatalogItem): CatalogItem['wire']
  /** A page of a list. Throws `invalidParams` for an invalid cursor. */
  page(list: ListName, cursor: unknown, rules: RevisionRules, tail?: ListTail): SerializedResult
}

/** Returns at most `room` caller-specific entries with keys after `after`. `last`: the last key, if more follow. */
export type ListTail = (after: string, room: number) => { entries: readonly object[]; last: string | undefined }

export interface ViewRequest {
  readonly toolsets: readonly string[]
  readonly extra: readonly CatalogItem[]
  readonly server: ServerSettings
  readonly capabilities: ServerCapabilities
  readonly cacheScope: 'public' | 'private'
  readonly keys: ListedKeys
  /** True if plugins hide a tool from lists. Must be the same function every time. */
  readonly isHidden: (name: string) => boolean
}

export const PAGE_SIZE = 500
/** Cache time for clients, milliseconds (server/utilities/caching). */
export const LIST_TTL = 60_000
const MAX_VIEWS = 1_000

const byKey = (a: CatalogItem, b: CatalogItem) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)

type Part = 'after' | 'listed'
const encodeCursor = (part: Part, key: string) => Buffer.from(`${part}:${key}`).toString('base64url')
function decodeCursor(list: ListName, cursor: unknown): readonly [part: Part, key: string] {
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString() : ''
  if (text.startsWith('after:')) return ['after', text.slice('after:'.length)]
  if (list === 'resources' && text.startsWith('listed:')) return ['listed', text.slice('listed:'.length)]
  throw new HostError('invalidParams', { detail: 'the cursor is invalid' })
}

function objectWire(wire: CatalogItem['wire']) {
  const output = wire['outputSchema'] as { type?: unknown } | undefined
  if (output === undefined || output.type === 'object') return wire
  const { outputSchema: _, ...rest } = wire
  return rest
}

interface Listed extends Pick<View, 'cacheScope' | 'wireOf'> {
  readonly meta: object
}

function createPager(list: ListName, items: readonly CatalogItem[], { cacheScope, meta, wireOf }: Listed) {
  const cached = new Map<string, SerializedResult>()
  const shared = { ttlMs: LIST_TTL, cacheScope }
  const callerSpecific = { ttlMs: 0, cacheScope: 'private' }
  const serialize = (from: number, { handshake, objectsOnly }: RevisionRules, after = '', tail?: ListTail) => {
    const page = items.slice(from, from + PAGE_SIZE)
    const last = page.at(-1)
    const more = last !== undefined && from + PAGE_SIZE < items.length
    const rest = more ? undefined : tail?.(after, PAGE_SIZE - page.length)
    const entries = page.map(item => (objectsOnly ? objectWire(wireOf(item)) : wireOf(item)))
    const nextListed = rest?.last === undefined ? undefined : encodeCursor('listed', rest.last)
    const nextCursor = more ? encodeCursor('after', last.key) : nextListed
    const body = { [list]: rest ? [...entries, ...rest.entries] : entries, nextCursor }
    const caching = tail ? callerSpecific : shared
    const full = handshake ? body : { resultType: 'complete', ...body, ...caching, _meta: meta }
    return new SerializedResult(JSON.stringify(full))
  }
  return (cursor: unknown, rules: RevisionRules, tail?: ListTail) => {
    const [part, key] = cursor === undefined ? [] : decodeCursor(list, cursor)
    if (part === 'listed') return serialize(items.length, rules, key, tail)
    let from = key === undefined ? 0 : items.findIndex(item => item.key > key)
    if (from === -1) from = items.length
    if (tail) return serialize(from, rules, '', tail)
    if (from % PAGE_SIZE !== 0) return serialize(from, rules)
    const name = `${from} ${rules.handshake} ${rules.objectsOnly}`
    return getOrCreate(cached, name, () => serialize(from, rules))
  }
}

export function collect(
  catalog: Pick<Catalog, 'items' | 'sourceOf'>,
  { toolsets, extra }: Pick<ViewRequest, 'toolsets' | 'extra'>,
  report = stopAtFirst,
): CatalogItem[] {
  const seen = new Map<string, ClashingItem>()
  const items: CatalogItem[] = []
  const sources = [...toolsets, EVERYWHERE].map(
    name => [describeToolset(name), catalog.items(name), catalog.sourceOf(name)] as const,
  )
  for (const [where, list, source] of [...sources, ['configureSession', extra, undefined] as const]) {
    for (const item of list) {
      const id = itemId(item)
      const first = seen.get(id)
      if (first !== undefined) {
        report(nameClash(first, { where, item, source }))
        continue
      }
      seen.set(id, { where, item, source })
      items.push(item)
    }
  }
  return items.sort(byKey)
}

/** `isLate`: other items can be added after startup, so clients must be able to subscribe to all lists. */
function capabilitiesOf(items: readonly CatalogItem[], isLate: boolean): ServerCapabilities {
  if (isLate) return { logging: {}, completions: {}, prompts: {}, resources: {}, tools: {} }
  const completes = items.some(item =>
    item.kind === 'prompts'
      ? Object.values(item.definition.arguments ?? {}).some(({ complete }) => complete)
      : item.kind === 'resources' && item.definition.complete !== undefined,
  )
  return {
    logging: {},
    ...(completes && { completions: {} }),
    ...(items.some(({ kind }) => kind === 'prompts') && { prompts: {} }),
    ...(items.some(({ kind }) => kind === 'resources') && { resources: {} }),
    ...(items.some(({ kind }) => kind === 'tools') && { tools: {} }),
  }
}

const mapOf = <T extends CatalogItem>(items: readonly T[]) => new Map(items.map(item => [item.key, item]))

function merge(items: readonly CatalogItem[], added: ReadonlyMap<ResourceItem, readonly ToolItem[]>): CatalogItem[] {
  const merged = new Map(items.map(item => [itemId(item), item]))
  for (const [item, [user]] of added) {
    const id = itemId(item)
    const twin = merged.get(id)
    if (twin && twin !== item) throw twinError(item, user, twin.kind === 'resources' ? added.get(twin)?.[0] : undefined)
    merged.set(id, item)
  }
  return [...merged.values()].sort(byKey)
}

export const withResourcesOfKeys = (
  items: readonly CatalogItem[],
  keys: ListedKeys,
  { compile }: Pick<Catalog, 'compile'>,
) => merge(items, resourcesOfKeys(items, keys, compile))

function twinError(item: ResourceItem, user: ToolItem | undefined, other: ToolItem | undefined): StartError {
  const goes = ({ key, keys }: ToolItem) => `goes along with tool "${key}" (its \`${keys.join('`, `')}\`)`
  const which = [user && goes(user), other ? goes(other) : 'is a resource of its own'].filter(one => one !== undefined)
  const what = `two different resources are called "${item.key}": one ${which.join(', the other ')}; rename one of them`
  const places = [user, other].flatMap(tool => (tool ? [{ of: tool.definition, at: tool.keys.slice(-1) }] : []))
  const [first, ...also] = places
  return new StartError('MH1107', what, { ...first, also })
}

function buildView(catalog: Catalog, request: ViewRequest, audience: Audience): View {
  const own = collect(catalog, request)
  const added = resourcesOfKeys(own, request.keys, catalog.compile)
  const items = added.size === 0 ? own : merge(own, added)
  const tools = items.filter(item => item.kind === 'tools')
  const resources = items.filter(item => item.kind === 'resources' && item.template === undefined) as ResourceItem[]
  const templates = items.filter(item => item.kind === 'resources' && item.template !== undefined) as ResourceItem[]
  const prompts = items.filter(item => item.kind === 'prompts')
  const { instructions, ...serverInfo } = request.server
  const isLate = request.toolsets.some(name => catalog.sourceOf(name)?.isLate)
  const { cacheScope } = request
  const meta = { [META.serverInfo]: serverInfo }
  const denials = new Map<CatalogItem, Denial>()
  for (const item of items) {
    const denial = audience.denialOf(item)
    if (denial) denials.set(item, denial)
  }
  for (const [item, users] of added) {
    const [first] = users
    const denial = first && denials.get(first)
    if (denial && users.every(tool => denials.has(tool))) denials.set(item, denial)
  }
  const wireOf = (item: CatalogItem) => (item.kind === 'tools' ? wireWithKeys(item, request.keys) : item.wire)
  const listed = { cacheScope, meta, wireOf }
  const unlisted = new Set(tools.filter(({ key }) => request.isHidden(key)) as CatalogItem[])
  const isListed = (item: CatalogItem) => !unlisted.has(item) && (denials.get(item)?.listed ?? true)
  const shown = (list: readonly CatalogItem[]) => list.filter(isListed)
  const pagers = {
    tools: createPager('tools', shown(tools), listed),
    resources: createPager('resources', shown(resources), listed),
    resourceTemplates: createPager('resourceTemplates', shown(templates), listed),
    prompts: createPager('prompts', shown(prompts), listed),
  }
  const sources = request.toolsets.flatMap(name =>
    [...catalog.items(name)].some(isListed) ? [catalog.sourceOf(name)?.instructions] : [],
  )
  return {
    serverInfo,
    metaJson: JSON.stringify(meta),
    // Those of a toolset can change while the view is cached.
    get instructions() {
      return [instructions, ...sources.map(read => read?.())].filter(Boolean).join('\n\n') || undefined
    },
    capabilities: { ...capabilitiesOf(items, isLate), ...request.capabilities },
    tools: mapOf(tools),
    resources: mapOf(resources),
    resourcesByNormalUri: new Map(resources.toReversed().map(item => [item.normalUri, item])),
    templates,
    listing: templates.filter(item => item.definition.list && !denials.has(item)),
    prompts: mapOf(prompts),
    restricted: items.find(({ definition }) => definition.access !== undefined),
    cacheScope,
    denialOf: item => denials.get(item),
    isListed,
    isUnlisted: item => unlisted.has(item),
    digestsOf: tool => digestsOfKeys(tool, request.keys),
    wireOf,
    page: (list, cursor, rules, tail) => pagers[list](cursor, rules, tail),
  }
}

export type Views = ReturnType<typeof createViews>

export function createViews(catalog: Catalog) {
  const views = new LRUCache<string, View>(lruLimit(MAX_VIEWS))
  // Sessions and routes keep their request object, which then needs no key.
  let byRequest = new WeakMap<ViewRequest, Map<string, View>>()
  const idsOf = new WeakMap<object, number>()
  let nextId = 0
  let generation = catalog.generation()
  const idOf = (of: object) => getOrCreate(idsOf, of, () => nextId++)

  function clearViews() {
    views.clear()
    byRequest = new WeakMap()
    generation = catalog.generation()
  }

  /** Finds or builds the view. Throws like `check`, which a view must pass once per request object. */
  function find(request: ViewRequest, audience: Audience, check?: (view: View) => void): View {
    if (generation !== catalog.generation()) clearViews()
    const { toolsets, extra, server, capabilities, cacheScope, keys, isHidden } = request
    const ids = [...extra, keys, isHidden].map(idOf)
    const key = JSON.stringify([toolsets, server, capabilities, cacheScope, ids, audience.key])
    const view = getOrCreate<string, View>(views, key, () => buildView(catalog, request, audience))
    check?.(view)
    const known = byRequest.get(request) ?? new Map<string, View>()
    if (known.size < MAX_VIEWS) byRequest.set(request, known.set(audience.key, view))
    return view
  }

  return {
    /** Returns the view found earlier for this request object; undefined after a change of the catalog. */
    known(request: ViewRequest, audience: Audience) {
      if (generation !== catalog.generation()) clearViews()
      return byRequest.get(request)?.get(audience.key)
    },
    find,
  }
}

type Lists = Readonly<Record<ItemKind, string>>

const listTexts = new WeakMap<View, { readonly shown: Lists; readonly all: Lists }>()

function textsOf(view: View, textOf: (item: CatalogItem) => unknown): Lists {
  const text = (items: Iterable<CatalogItem>) => JSON.stringify([...items].map(textOf).filter(Boolean))
  return {
    tools: text(view.tools.values()),
    resources:
      text([...view.resources.values(), ...view.templates]) +
      JSON.stringify(view.listing.map(({ key, definition }) => [key, `${definition.list}`])),
    prompts: text(view.prompts.values()),
  }
}

function listsOf(view: View) {
  const lists = listTexts.get(view) ?? {
    shown: textsOf(view, item => view.isListed(item) && view.wireOf(item)),
    all: textsOf(view, item => [view.isListed(item), view.wireOf(item)]),
  }
  listTexts.set(view, lists)
  return lists
}

export function changedLists(before: View, after: View, hidden = false): ItemKind[] {
  if (before === after) return []
  const [one, other] = [listsOf(before), listsOf(after)].map(({ shown, all }) => (hidden ? all : shown))
  return LIST_KINDS.filter(kind => one?.[kind] !== other?.[kind])
}
