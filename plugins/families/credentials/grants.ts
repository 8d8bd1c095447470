// Lists the grants of authorization servers of this host for plugins that show them.
import type { InternalHost } from '../../../core/internal.ts'

/** Access that a user granted to an OAuth client. Times are milliseconds since the epoch. */
export interface OperatorGrant {
  readonly client: { readonly id: string; readonly name?: string; readonly documentHost?: string }
  readonly subject: string
  readonly scopes: readonly string[]
  readonly since: number
  /** The last time that the client received tokens for a code or a refresh token. */
  readonly used?: number
}

/** An authorization server whose grants can be listed. */
export interface GrantSource {
  issuer(): string
  /** `fixed`: the ids of clients in the config. */
  newest(): Promise<{ grants: readonly OperatorGrant[]; isCut: boolean; fixed: ReadonlySet<string> }>
}

const GRANTS = Symbol.for('mcp-host.grants')

/** The authorization servers, shared by the plugins of a host. */
export const grantSources = (host: Pick<InternalHost, 'share'>) => host.share(GRANTS, () => new Set<GrantSource>())
