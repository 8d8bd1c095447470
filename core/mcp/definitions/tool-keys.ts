// Additions of tool keys to lists. Tool keys are tool properties that plugins read.
import { StartError } from '../../http/errors.ts'
import type { Meta } from '../wire/protocol.ts'
import type { Catalog, CatalogItem, ResourceItem, ToolItem } from './catalog.ts'
import type { ResourceDefinition, ToolDefinition } from './define.ts'

export interface ListedKey<Value = never> {
  /** Entries of `_meta` in lists; they replace those of the tool. */
  meta?(value: Value, tool: ToolDefinition): Meta
  /** Resources served with the tool, only to its callers. Return the same objects every time. */
  resources?(value: Value, tool: ToolDefinition): readonly ResourceDefinition[]
  /** Digest for the lock of content that lists do not show, such as a page. */
  digest?(value: Value, tool: ToolDefinition): string | undefined
  /** Returns why the tool cannot be served; undefined if it can. `isIsolated`: `isolate` applies to the tool. */
  check?(value: Value, tool: ToolDefinition, limits: { readonly isIsolated: boolean }): string | undefined
}

/** The keys that plugins of one route read, by name, outermost first. */
export type ListedKeys = ReadonlyMap<string, ListedKey>

export const keyValue = (definition: ToolDefinition, name: string) => Reflect.get(definition, name) as never

export const readKeys = <Key>({ keys }: ToolItem, read: ReadonlyMap<string, Key>): Array<readonly [string, Key]> =>
  keys.length === 0 ? [] : [...read].filter(([name]) => keys.includes(name))

export function wireWithKeys(tool: ToolItem, read: ListedKeys): ToolItem['wire'] {
  const { wire, definition } = tool
  const added = readKeys(tool, read).flatMap(([name, key]) => key.meta?.(keyValue(definition, name), definition) ?? [])
  return added.length === 0 ? wire : { ...wire, _meta: Object.assign({}, definition._meta, ...added) }
}

export const digestsOfKeys = (tool: ToolItem, read: ListedKeys): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readKeys(tool, read).flatMap(([name, key]) => {
      const digest = key.digest?.(keyValue(tool.definition, name), tool.definition)
      return digest === undefined ? [] : [[name, digest] as const]
    }),
  )

export function resourcesOfKeys(
  items: readonly CatalogItem[],
  read: ListedKeys,
  compile: Catalog['compile'],
): ReadonlyMap<ResourceItem, readonly ToolItem[]> {
  const found = new Map<ResourceItem, ToolItem[]>()
  for (const tool of items) {
    if (tool.kind !== 'tools') continue
    for (const [name, key] of readKeys(tool, read)) {
      for (const definition of key.resources?.(keyValue(tool.definition, name), tool.definition) ?? []) {
        const item = compile(definition, `\`${name}\` of tool "${tool.key}"`)
        if (item.kind === 'resources') found.set(item, [...(found.get(item) ?? []), tool])
      }
    }
  }
  return found
}

/** Throws a StartError for a key that no plugin of the route reads, and for a tool that a key refuses. */
export function checkKeys(
  items: readonly CatalogItem[],
  path: string,
  read: ListedKeys,
  { fixForKey, isIsolated }: { fixForKey(key: string, path: string): string; isIsolated(tool: ToolItem): boolean },
): void {
  for (const item of items) {
    if (item.kind !== 'tools' || item.keys.length === 0) continue
    const { key: tool, definition } = item
    const refuse = (name: string, why: string) =>
      new StartError('MH1109', `routes['${path}'] serves the tool "${tool}", ${why}`, {
        of: definition,
        at: [name],
        also: [{ at: ['routes', path] }],
      })
    const stray = item.keys.find(name => !read.has(name))
    if (stray !== undefined) {
      throw refuse(stray, `whose \`${stray}\` no plugin of this route reads; ${fixForKey(stray, path)}`)
    }
    for (const [name, key] of readKeys(item, read)) {
      const fault = key.check?.(keyValue(definition, name), definition, { isIsolated: isIsolated(item) })
      if (fault !== undefined) throw refuse(name, fault)
    }
  }
}
