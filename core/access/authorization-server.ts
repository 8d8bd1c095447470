// The slot `authorizationServer`: the server that signs tokens of this host, and its pages.
import type { HostContext } from '../kernel/endpoint.ts'

/** A public key as a JWK (RFC 7517) with `kid`, `alg` and `use`. */
export type PublicJwk = Readonly<Record<string, unknown>>

/** The `authorizationServer` slot, for routes with host-issued tokens. */
export interface AuthorizationServer {
  /** The issuer identifier. Without `http.publicUrl`, undefined until the host listens. */
  issuer(): string | undefined
  /** The signing key, then earlier keys that still verify. Returns the same list until a key changes. */
  keys(): readonly PublicJwk[]
  /** True if anyone can sign in (development). */
  readonly isDevelopment?: boolean
  readonly pages?: UserPages
}

export type UserPage = { title: string; text: string; isError: boolean; action?: { label: string; href: string } } & {
  /** Texts by value. The button of an item sends its value as `name`, and the token as `csrf`. */
  list?: { name: string; label: string; token: string; items: ReadonlyMap<string, string> }
}

export interface UserPages {
  /** The subject of the browser's user. Undefined: the response redirects to the sign-in, which returns to `path`. */
  identify(ctx: HostContext, path: string): Promise<string | undefined>
  /** The roles of the browser's user, checked with the identity provider. Undefined: the user has to sign in again. */
  rolesOf(ctx: HostContext): Promise<readonly string[] | undefined>
  show(ctx: HostContext, page: UserPage, status?: number): Promise<void>
  /** `listener` receives subjects that can no longer sign in. */
  onDenied(listener: (subject: string) => void): unknown
}

export const noAuthorizationServer: AuthorizationServer = { issuer: () => undefined, keys: () => [] }
