// The surface of a config, for `mcp-host lock` and `start --frozen`: deterministic on every machine.
import { createHash } from 'node:crypto'
import type { JsonObject } from '../../core/mcp/protocol.ts'

/** Format version. 2 adds `unlisted`, `digests` and the effect of `scopeHierarchy`. */
export const SURFACE_FORMAT = 2

export const SURFACE_LISTS = ['tools', 'resources', 'resourceTemplates', 'prompts'] as const
export type SurfaceList = (typeof SURFACE_LISTS)[number]

export interface SurfaceItem {
  readonly hash: string
  readonly needs: readonly string[]
  /** Set if lists show it to callers without access. */
  readonly visibility?: 'listed'
  /** Set if a plugin hides the tool from lists, like `search`. */
  readonly unlisted?: true
  /** Hashes of content outside of lists, such as the page of an app. */
  readonly digests?: Readonly<Record<string, string>>
  readonly task?: string
  readonly shown: JsonObject
}

export interface SurfaceRoute extends Readonly<Record<SurfaceList, Readonly<Record<string, SurfaceItem>>>> {
  readonly hash: string
  readonly route: string
  readonly needs: readonly string[]
  readonly revisions: readonly string[]
  readonly transports: readonly string[]
  readonly stateless: boolean
  readonly listen: boolean
  readonly capabilities: JsonObject
}

export interface Surface {
  readonly format: typeof SURFACE_FORMAT
  readonly hash: string
  readonly server: JsonObject
  /** Settings with effects at run time only: `configureSession`. */
  readonly atRunTime: readonly string[]
  /** By path, with every parameter value. Toolsets used only by `configureSession` have the key `/path with name`. */
  readonly routes: Readonly<Record<string, SurfaceRoute>>
}

const DATA = new Set(['enum', 'const', 'default', 'examples'])
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
