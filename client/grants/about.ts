// What a grant needs to know of the login that it is part of.

import type { DPoPSigner } from '../dpop.ts'
import type { ClientIdentity, ServerInfo } from '../parties.ts'

export interface GrantAbout {
  readonly server: ServerInfo
  readonly client: ClientIdentity
  /** The `resource` parameter, byte for byte; undefined: none. */
  readonly resource: string | undefined
  /** The `scope` parameter; undefined: none. */
  readonly scope: string | undefined
  readonly dpop?: DPoPSigner | undefined
}
