// Reports actions of operators to plugins that record them.
import type { InternalHost } from '../../../core/internal.ts'

export interface OperatorAction {
  readonly action: string
  /** The object of the action, without secrets. */
  readonly target: string
  /** The session or task, as the console identifies it. */
  readonly handle?: string | undefined
  /** The pseudonym of the session's owner. */
  readonly owner?: string | undefined
  readonly outcome: 'ok' | 'failed'
  readonly operator: string
}

const ACTIONS = Symbol('the actions of operators')

export const operatorActions = (host: Pick<InternalHost, 'share'>) =>
  host.share(ACTIONS, () => new Set<(action: OperatorAction) => void>())
