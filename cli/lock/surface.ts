// The surface of a config, for `mcp-host lock` and `start --frozen`: deterministic on every machine.
import { createHash } from 'node:crypto'
import type { JsonObject } from '../../core/mcp/protocol.ts'

/** Format version. 2 adds `unlisted`, `digests` and the effect of `scopeHierarchy`. */
export const SURFACE_FORMAT = 2

export const SURFACE_LISTS = ['tools', 'resources', 'resourceTemplates', 'prompts'] as const
export type SurfaceList = (typeof SURFACE_LISTS)[number]

export interface SurfaceItem {
  readonly hash: string
  /** Requirements in words. */
  readonly needs: readonly string[]
  /** Set if callers without access see it in lists. */
  readonly visibility?: 'listed'
  /** Set if a plugin leaves the tool out of lists, as `search` does. */
  readonly unlisted?: true
  /** Hashes of parts that lists do not show, such as the page of an app. */
  readonly digests?: Readonly<Record<string, string>>
  readonly task?: string
  /** As in lists. */
  readonly shown: JsonObject
}

/** A path, or paths of a route with the same surface. */
export interface SurfaceRoute extends Readonly<Record<SurfaceList, Readonly<Record<string, SurfaceItem>>>> {
  readonly hash: string
  /** As in the config. */
  readonly route: string
  readonly needs: readonly string[]
  readonly revisions: readonly string[]
  /** Names of transports. */
  readonly transports: readonly string[]
  readonly stateless: boolean
  readonly listen: boolean
  readonly capabilities: JsonObject
}

export interface Surface {
  readonly format: typeof SURFACE_FORMAT
  /** Of all that follows. */
  readonly hash: string
  /** `serverInfo`, without a plain version. */
  readonly server: JsonObject
  /** Settings that decide at run time: `configureSession`. */
  readonly atRunTime: readonly string[]
  /** By path, with every value of a parameter. Toolsets of `configureSession` only are at `/path with name`. */
  readonly routes: Readonly<Record<string, SurfaceRoute>>
}

/** Keywords with data, in which order can matter. */
const DATA = new Set(['enum', 'const', 'default', 'examples'])
/** Keywords whose lists are sets. */
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

/** Canonical JSON: sorted keys, and in schemas sorted `required` and `type`. */
export const canonicalJson = <Value>(value: Value): Value => canonical(value, '', false) as Value

export const hashOf = (value: object): string =>
  `sha256-${createHash('sha256').update(JSON.stringify(value)).digest('base64url')}`

export function withHash<Value extends object>(value: Value): Value & { readonly hash: string } {
  const known = canonicalJson(value)
  return { hash: hashOf(known), ...known }
}
