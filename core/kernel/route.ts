// A configured path, as the kernel uses it.

/** All users, a policy, or all users with these scopes and roles. */
export type AuthorizeRule = true | string | { scope?: string | string[]; role?: string | string[] }

/** A configured path and its access rule. */
export interface Route {
  /** The configured path, such as `/t/:category?`. */
  readonly path: string
  /** The configured rule; an auth plugin enforces it. */
  readonly authorize: AuthorizeRule | undefined
  /** Scopes of the challenge if `authorize` names none; if empty, the scopes that all items require. */
  readonly challengeScopes: readonly string[]
  readonly cors: string | undefined
  /** Example values of a path parameter for hints. Empty for protected routes. */
  readonly publicCategories: readonly string[]
  /** Returns undefined if the parameters match nothing, or if a more specific route serves the path. */
  toolsetsFor(params: Readonly<Record<string, string>>): readonly string[] | undefined
  url(params?: Readonly<Record<string, string>>): string
}
