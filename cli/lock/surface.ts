// The surface of a config, for `mcp-host lock` and `start --frozen`: deterministic on every machine.
import type { JsonObject } from '../../core/mcp/wire/protocol.ts'
import type { LockEntry } from '../../plugins/upstream/lock-entry.ts'

/** A lock file: the surface of a config, and accepted definitions of its upstream servers. */
export interface Lock extends Surface {
  readonly upstreams?: Readonly<Record<string, LockEntry>>
}

/** Format version. 2 adds `unlisted`, `digests` and the effect of `scopeHierarchy`. */
export const SURFACE_FORMAT = 2

export const SURFACE_LISTS = ['tools', 'resources', 'resourceTemplates', 'prompts'] as const
export type SurfaceList = (typeof SURFACE_LISTS)[number]

export interface SurfaceItem {
  readonly hash: string
  readonly needs: readonly string[]
  /** Set if lists show the item to callers without access. */
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
  /** Routes by path, with every parameter value. Toolsets only of `configureSession` have the key `/path with name`. */
  readonly routes: Readonly<Record<string, SurfaceRoute>>
}
