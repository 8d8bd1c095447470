// Limits of what is stored in the file.
import type { StreamBounds } from '../../families/stores/index.ts'

export interface StoreBounds extends StreamBounds {
  readonly maxSize: number
  /** Unfinished logins: the oldest are deleted first. */
  readonly pending: { readonly entries: number; readonly bytes: number }
}

/** Shares of `maxSize`: of all sessions, those of an owner, all tasks, those of a holder. */
export const SHARE = { all: 0.4, owner: 0.2, tasks: 0.2, tasksOfHolder: 0.05 }
/** Limits of remembered ended sessions, and bytes of one. */
const MOST_ENDED = { least: 500, most: 20_000, share: 0.01, bytes: 100 }

/** Bytes of all sessions and of an owner's, and the number of remembered ended ones. */
export const boundsOfSessions = ({ maxSize }: Pick<StoreBounds, 'maxSize'>) => ({
  all: Math.floor(maxSize * SHARE.all),
  owner: Math.floor(maxSize * SHARE.owner),
  ended: Math.floor(
    Math.max(MOST_ENDED.least, Math.min(MOST_ENDED.most, (maxSize * MOST_ENDED.share) / MOST_ENDED.bytes)),
  ),
})
