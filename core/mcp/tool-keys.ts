// Keys of tools that extensions read, such as `task` and `app`: what they add to lists and resources.
import { StartError } from '../http/errors.ts'
import type { Catalog, CatalogItem, ResourceItem, ToolItem } from './catalog.ts'
import type { ResourceDefinition, ToolDefinition, ToolKeyName } from './define.ts'
import type { Meta } from './protocol.ts'

/** What an extension adds for tools with a key. */
export interface ShownKey {
  /** Entries of `_meta` in lists, which replace those of the tool. */
  meta?(tool: ToolDefinition): Meta
  /** Resources that are served with the tool, to callers of such a tool only. The same objects every time. */
  resources?(tool: ToolDefinition): readonly ResourceDefinition[]
  /** Digest for the lock of content that lists do not show, such as a page. */
  digest?(tool: ToolDefinition): string | undefined
}

/** The keys that the extensions of one route read. */
export type ShownKeys = ReadonlyMap<ToolKeyName, ShownKey>

/** A tool in lists of a route whose extensions read these keys. */
export function wireWithKeys({ wire, keys, definition }: ToolItem, read: ShownKeys): ToolItem['wire'] {
  const added = keys.map(name => read.get(name)?.meta?.(definition)).filter(meta => meta !== undefined)
  return added.length === 0 ? wire : { ...wire, _meta: Object.assign({}, definition._meta, ...added) }
}

/** The digests of a tool, by key. */
export const digestsOfKeys = ({ keys, definition }: ToolItem, read: ShownKeys): Readonly<Record<string, string>> =>
  Object.fromEntries(
    keys.flatMap(name => {
      const digest = read.get(name)?.digest?.(definition)
      return digest === undefined ? [] : [[name, digest] as const]
    }),
  )

/** The resources that are served with these items, each with its tools. */
export function resourcesOfKeys(
  items: readonly CatalogItem[],
  read: ShownKeys,
  compile: Catalog['compile'],
): ReadonlyMap<ResourceItem, readonly ToolItem[]> {
  const found = new Map<ResourceItem, ToolItem[]>()
  for (const tool of items) {
    if (tool.kind !== 'tools') continue
    for (const name of tool.keys) {
      for (const definition of read.get(name)?.resources?.(tool.definition) ?? []) {
        const item = compile(definition, `\`${name}\` of tool "${tool.key}"`)
        if (item.kind === 'resources') found.set(item, [...(found.get(item) ?? []), tool])
      }
    }
  }
  return found
}

/** Throws a StartError for a tool with a key that no extension of its route reads. */
export function checkKeys(items: readonly CatalogItem[], path: string, read: ShownKeys): void {
  for (const item of items) {
    const stray = item.kind === 'tools' ? item.keys.find(name => !read.has(name)) : undefined
    if (stray === undefined) continue
    const what = `routes['${path}'] serves the tool "${item.key}", whose \`${stray}\` no plugin of this route reads`
    throw new StartError(`${what}; switch one on there`, {
      of: item.definition,
      at: [stray],
      also: [{ at: ['routes', path] }],
    })
  }
}
