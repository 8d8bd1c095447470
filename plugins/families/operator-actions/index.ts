// Reports actions of operators to plugins that record them, and grants to plugins that show them.
import type { InternalHost } from '../../../core/internal.ts'

/** An action of an operator on the running host. */
export interface OperatorAction {
  readonly action: string
  /** The object of the action, without secrets. */
  readonly target: string
  readonly outcome: 'ok' | 'failed'
  readonly operator: string
}

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

const ACTIONS = Symbol('the actions of operators')

/** The listeners for actions of operators, shared by the plugins of a host. */
export const operatorActions = (host: Pick<InternalHost, 'share'>) =>
  host.share(ACTIONS, () => new Set<(action: OperatorAction) => void>())

const GRANTS = Symbol.for('mcp-host.grants')

/** The authorization servers, shared by the plugins of a host. */
export const grantSources = (host: Pick<InternalHost, 'share'>) => host.share(GRANTS, () => new Set<GrantSource>())
