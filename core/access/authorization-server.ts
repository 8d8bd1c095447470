// The authorization server that this host itself is, where a plugin makes it one: the interface of the slot
// `authorizationServer`, for whoever verifies its tokens and whoever tells clients of it.

/** A public key as a JWK (RFC 7517): `kid`, `alg` and `use` are there. */
export type PublicJwk = Readonly<Record<string, unknown>>

/** The slot `authorizationServer`: of routes whose tokens this host gives out. */
export interface AuthorizationServer {
  /** Its issuer identifier; undefined where this host is none. Call it once the host listens, unless `http.publicUrl` is set. */
  issuer(): string | undefined
  /**
   * The keys that its tokens are signed by, the first, and those that they were signed by; empty where this host is none, which
   * is known once its plugin is set up. Asked for at every token: what is not there any more verifies nothing from then on. The
   * same list where nothing has changed, another where something has.
   */
  keys(): readonly PublicJwk[]
}

/** Where no plugin makes the host one. */
export const noAuthorizationServer: AuthorizationServer = { issuer: () => undefined, keys: () => [] }
