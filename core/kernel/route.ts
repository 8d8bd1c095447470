// A configured path, as the kernel uses it.

/** All users, a policy, or all users with these scopes and roles. */
export type AuthorizeRule = true | string | { scope?: string | string[]; role?: string | string[] }

/** A configured path and its access rule. */
export interface Route {
  /** As configured, such as `/t/:category?`. */
  readonly path: string
  /** As configured; an auth plugin enforces it. */
  readonly authorize: AuthorizeRule | undefined
  /** Scopes in the challenge if `authorize` names none; empty: those of all items. */
  readonly challengeScopes: readonly string[]
  /** The name of a CORS policy. */
  readonly cors: string | undefined
  /** Example values of a path parameter for hints. Empty if the route has `authorize`. */
  readonly publicCategories: readonly string[]
  /** False if the parameters name nothing, or if a narrower route serves the path. */
  serves(params: Readonly<Record<string, string>>): boolean
  /** The URL for these parameters, from `http.publicUrl` or the listening address. */
  url(params?: Readonly<Record<string, string>>): string
}
