// One row of the tables that say what to change where a provider says no.
import type { ProviderType } from './kinds.ts'
import type { UpstreamFault } from './upstream.ts'

export interface Explanation {
  /** What to change, and in which console. */
  readonly fix: string
  /** Where the code alone would say something else. */
  readonly fault?: UpstreamFault
}

export interface Row extends Explanation {
  readonly types?: readonly ProviderType[]
  /** All of these must fit. */
  readonly code?: RegExp
  readonly text?: RegExp
}

/** A row of one vendor's. */
export const row = (
  type: ProviderType,
  match: Pick<Row, 'code' | 'text'>,
  fix: string,
  fault?: UpstreamFault,
): Row => ({
  types: [type],
  ...match,
  fix,
  ...(fault && { fault }),
})
