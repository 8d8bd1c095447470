// What an authorization server keeps: logins under way, consents, grants, codes and refresh tokens. The interface of the
// slot `grantStore`; memory-grant-store.ts is its default.

/**
 * Keeps sealed texts under keys that tell nothing. Every operation on one key is whole: of two nodes that do the same at the
 * same time, one is first. A text and a set of one key are two things; `delete` deletes both.
 *
 * `ttl` in milliseconds, at most 100 years; what is past it is not there, so what is written with 0 or less is gone at once.
 * Keys begin with one of `GRANT_KINDS`. Rejects with a RangeError for another key or ttl, with a HostError `unavailable`
 * where what it keeps things in does not answer, or something is too large to be kept; nothing is half done then. Where it
 * did not answer it may be done.
 */
export interface GrantStore {
  /** Whether other nodes see the same. */
  readonly shared: boolean
  get(key: string): Promise<string | undefined>
  set(key: string, value: string, ttl: number): Promise<void>
  /** Only where the key is absent; whether it was. */
  add(key: string, value: string, ttl: number): Promise<boolean>
  /** Only where it still holds `from`; whether it did. */
  replace(key: string, from: string, to: string, ttl: number): Promise<boolean>
  /** Gives what is there and deletes it: whoever gets it is the only one. */
  take(key: string): Promise<string | undefined>
  /** Each key by itself: where it rejects, some of them may be gone. */
  delete(...keys: readonly string[]): Promise<void>
  /**
   * Puts a member into the set of this key, for at least `ttl`, and gives how many there are. Members past their time are gone;
   * of more than `most` the oldest go, and are given to nobody. One that is there already becomes the youngest, and is not
   * there for less time than before.
   */
  join(set: string, member: string, ttl: number, most: number): Promise<number>
  leave(set: string, member: string): Promise<void>
  /** Oldest first. */
  members(set: string): Promise<readonly string[]>
}

/** What is kept there is of one of these kinds; a flood of the first never costs any of the second its place. */
export const GRANT_KINDS = {
  /** Logins that nobody finished yet: anyone may begin some. Keys begin with it. */
  pending: 'pending:',
  /** What somebody who signed in was given. */
  granted: 'granted:',
} as const

const LONGEST_TTL = 100 * 365.25 * 86_400_000

/** For those who write a store: of which kind a key is. Throws a RangeError for a key of none. */
export function grantKindOf(key: string): keyof typeof GRANT_KINDS {
  if (key.startsWith(GRANT_KINDS.pending)) return 'pending'
  if (key.startsWith(GRANT_KINDS.granted)) return 'granted'
  // What else is in the key may be of a person.
  throw new RangeError(
    `a key of a grant store begins with ${Object.values(GRANT_KINDS).join(' or ')}; this one of ${key.length} characters does not`,
  )
}

/** For those who write a store: a ttl in whole milliseconds, not less than it was. Throws a RangeError for one that is no time. */
export function checkGrantTtl(ttl: number): number {
  if (ttl <= LONGEST_TTL) return Math.max(0, Math.ceil(ttl))
  throw new RangeError(
    `a grant store keeps things for at most 100 years: the ttl is to be in milliseconds, and is ${ttl}`,
  )
}
