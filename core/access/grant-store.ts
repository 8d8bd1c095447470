// What an authorization server keeps: logins under way, consents, grants, codes and refresh tokens. The interface of the
// slot `grantStore`; memory-grant-store.ts is its default.

/**
 * Keeps sealed texts under keys that tell nothing. Every operation is whole: of two nodes that do the same at the same time,
 * one is first. `ttl` in milliseconds; what is past it is not there. Rejects with `unavailable` where what it keeps things in
 * does not answer; nothing is half done then, but it may be done.
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
  delete(...keys: readonly string[]): Promise<void>
  /**
   * Puts a member into the set of this key, for at least `ttl`, and gives how many there are. Members past their time are gone;
   * of more than `most` the oldest go, and are given to nobody.
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
