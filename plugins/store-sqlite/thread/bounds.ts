// How much of what is kept in the file.
import type { StreamBounds } from '../../families/stores/index.ts'

export interface StoreBounds extends StreamBounds {
  /** Bytes of the file. */
  readonly maxSize: number
  /** Logins that nobody finished yet, and the bytes that they cost: of more, what was written first goes. */
  readonly pending: { readonly entries: number; readonly bytes: number }
}

/** Of `maxSize`: what all sessions may take together, what those of one owner may, what all tasks may, and those of one holder. */
export const SHARE = { all: 0.4, owner: 0.2, tasks: 0.2, tasksOfHolder: 0.05 }
/** Of how many at most, and what each of them costs: of more the first to expire go. */
const MOST_ENDED = { least: 500, most: 20_000, share: 0.01, bytes: 100 }

/** Bytes that sessions may take, of all owners and of one; and of how many ended ones it is known. */
export const boundsOfSessions = ({ maxSize }: Pick<StoreBounds, 'maxSize'>) => ({
  all: Math.floor(maxSize * SHARE.all),
  owner: Math.floor(maxSize * SHARE.owner),
  ended: Math.floor(
    Math.max(MOST_ENDED.least, Math.min(MOST_ENDED.most, (maxSize * MOST_ENDED.share) / MOST_ENDED.bytes)),
  ),
})
