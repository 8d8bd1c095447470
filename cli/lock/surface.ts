// What a config offers, route by route, as one document: for `mcp-host lock`, which writes it down, and `start --frozen`,
// which holds a host against it. Of one config it is the same text on every machine, whatever the order of its keys.
import { createHash } from 'node:crypto'
import type { JsonObject } from '../../core/mcp/protocol.ts'

/** The version of the document's form. 2 has `unlisted`, `digests`, and whom `scopeHierarchy` lets in. */
export const SURFACE_FORMAT = 2

/** The lists of a route, as the protocol calls them. */
export const SURFACE_LISTS = ['tools', 'resources', 'resourceTemplates', 'prompts'] as const
export type SurfaceList = (typeof SURFACE_LISTS)[number]

/** A tool, resource, family of resources or prompt. */
export interface SurfaceItem {
  /** Of all that follows. */
  readonly hash: string
  /** What it asks of its callers, in words: all of these. Empty: nothing. */
  readonly needs: readonly string[]
  /** Whether lists show it to those who may not use it. */
  readonly visibility?: 'listed'
  /** A tool that plugins leave out of lists, as `search` does. */
  readonly unlisted?: true
  /** Of what lists do not show of a tool, such as the page of its `app`: by the key. */
  readonly digests?: Readonly<Record<string, string>>
  /** Of a tool whose calls are tasks. */
  readonly task?: string
  /** As lists show it. */
  readonly shown: JsonObject
}

/** An address, or those of a route that serve the same. */
export interface SurfaceRoute extends Readonly<Record<SurfaceList, Readonly<Record<string, SurfaceItem>>>> {
  readonly hash: string
  /** As the config writes it. */
  readonly route: string
  /** As of an item: who may come in. */
  readonly needs: readonly string[]
  readonly revisions: readonly string[]
  /** The plugins that serve clients there, by their names in the config. */
  readonly transports: readonly string[]
  readonly stateless: boolean
  /** Whether `subscriptions/listen` is served. */
  readonly listen: boolean
  /** What the server declares, `extensions` among it. */
  readonly capabilities: JsonObject
}

/** What a config offers. */
export interface Surface {
  readonly format: typeof SURFACE_FORMAT
  /** Of all that follows. */
  readonly hash: string
  /** What the server says of itself; a version only where it is more than that. */
  readonly server: JsonObject
  /** What of the config decides at run time, so that it is not in here: `configureSession`. */
  readonly atRunTime: readonly string[]
  /**
   * By address, where a parameter has each of the toolsets that it may name. A toolset that only `configureSession` can add
   * stands alone as `/path with name`, for each route.
   */
  readonly routes: Readonly<Record<string, SurfaceRoute>>
}

/** Keywords whose values are data, in which the order of a list may mean something. */
const DATA = new Set(['enum', 'const', 'default', 'examples'])
/** Keywords of a schema whose lists are sets. */
const SETS = new Set(['required', 'type'])

const compareText = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)

function canonical(value: unknown, key: string, inSchema: boolean): unknown {
  if (Array.isArray(value)) {
    const list = value.map(entry => canonical(entry, '', inSchema))
    return inSchema && SETS.has(key) && list.every(entry => typeof entry === 'string') ? list.sort(compareText) : list
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
    .sort(([one], [other]) => compareText(one, other))
    .map(([name, entry]) => [name, canonical(entry, name, isSchema(name) || (inSchema && !DATA.has(name)))])
  return Object.fromEntries(entries)
}

const isSchema = (name: string) => name === 'inputSchema' || name === 'outputSchema'

/** JSON in its one form: keys in order, and of schemas `required` and `type`, too. */
export const canonicalJson = <Value>(value: Value): Value => canonical(value, '', false) as Value

/** A hash of JSON that is in its one form. */
export const hashOf = (value: object): string =>
  `sha256-${createHash('sha256').update(JSON.stringify(value)).digest('base64url')}`

/** The same with its hash in front. */
export function withHash<Value extends object>(value: Value): Value & { readonly hash: string } {
  const known = canonicalJson(value)
  return { hash: hashOf(known), ...known }
}
