// A configured path, as everything that acts on requests knows it. What is served there is a floor's above: core/mcp/routes.ts.

/** Who may use a route: every user, the name of a policy, or whoever has all of these scopes and roles. */
export type AuthorizeRule = true | string | { scope?: string | string[]; role?: string | string[] }

/** A configured path, and who may come in by it. */
export interface Route {
  /** As configured, such as `/t/:category?`. */
  readonly path: string
  /** As configured; an auth plugin enforces it. */
  readonly authorize: AuthorizeRule | undefined
  /** What a client is told to ask for where `authorize` names no scope; empty: what all items of the address need. */
  readonly challengeScopes: readonly string[]
  /** The name of a CORS policy. */
  readonly cors: string | undefined
  /** Example values of a path parameter for hints. Empty if the route has `authorize`. */
  readonly publicCategories: readonly string[]
  /** Whether something is served at this address: not where its parameters name nothing, nor where a narrower route has it. */
  serves(params: Readonly<Record<string, string>>): boolean
  /** The URL of this route for these parameters, from `http.publicUrl` or the address it listens on. */
  url(params?: Readonly<Record<string, string>>): string
}
