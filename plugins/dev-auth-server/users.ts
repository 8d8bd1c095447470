// Who can sign in at the authorization server for development: a part of its options.

/** Somebody who can sign in, with what their tokens say of them. */
export interface DevUser {
  /** The token's `sub`. */
  id: string
  /** On the consent page. Default: the id. */
  name?: string
  /** The token's `roles`. */
  roles?: string[]
  /** Further claims of the token. */
  claims?: Record<string, unknown>
}
