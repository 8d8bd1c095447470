// Keys of tools that extensions read, such as `task` and `app`: what they add to lists and resources.
import { StartError } from '../http/errors.ts'
import type { Catalog, CatalogItem, ResourceItem, ToolItem } from './catalog.ts'
import type { ResourceDefinition, ToolDefinition, ToolKeyName } from './define.ts'
import type { Meta } from './protocol.ts'

export interface ShownKey {
  /** Entries of `_meta` in lists; they replace those of the tool. */
  meta?(tool: ToolDefinition): Meta
  /** Resources served with the tool, only to its callers. Return the same objects every time. */
  resources?(tool: ToolDefinition): readonly ResourceDefinition[]
  /** Digest for the lock of content that lists do not show, such as a page. */
  digest?(tool: ToolDefinition): string | undefined
}

export type ShownKeys = ReadonlyMap<ToolKeyName, ShownKey>

export function wireWithKeys({ wire, keys, definition }: ToolItem, read: ShownKeys): ToolItem['wire'] {
  const added = keys.map(name => read.get(name)?.meta?.(definition)).filter(meta => meta !== undefined)
  return added.length === 0 ? wire : { ...wire, _meta: Object.assign({}, definition._meta, ...added) }
}

export const digestsOfKeys = ({ keys, definition }: ToolItem, read: ShownKeys): Readonly<Record<string, string>> =>
  Object.fromEntries(
    keys.flatMap(name => {
      const digest = read.get(name)?.digest?.(definition)
      return digest === undefined ? [] : [[name, digest] as const]
    }),
  )

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

export function checkKeys(items: readonly CatalogItem[], path: string, read: ShownKeys): void {
  for (const item of items) {
    const stray = item.kind === 'tools' ? item.keys.find(name => !read.has(name)) : undefined
    if (stray === undefined) continue
    const what = `routes['${path}'] serves the tool "${item.key}", whose \`${stray}\` no plugin of this route reads`
    throw new StartError('MH1109', `${what}; switch one on there`, {
      of: item.definition,
      at: [stray],
      also: [{ at: ['routes', path] }],
    })
  }
}
