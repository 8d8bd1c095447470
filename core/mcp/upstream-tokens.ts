// The token of a caller at the company's own identity provider, for tools that call the company's API as them: the
// interface of the slot `upstreamTokens`.
import type { User } from '../kernel/user.ts'
import { ToolError } from './define.ts'

/** What a tool says of the token that it wants. */
export interface UpstreamTokenRequest {
  /** Scopes at the provider, with spaces between them. Default: those that the caller signed in with. */
  readonly scope?: string
}

/** The slot `upstreamTokens`. */
export interface UpstreamTokens {
  /**
   * An access token of the provider for this user. Rejects with a HostError `unauthorized` where the login has ended and they
   * must sign in again, with `unavailable` where the provider does not answer, and with a ToolError that says what to change
   * where it gives no such token. It is for the tool alone: never for a client, never for a log.
   */
  tokenFor(user: User | undefined, request: UpstreamTokenRequest, signal: AbortSignal): Promise<string>
}

/** Where nobody signs in through this host. */
export const noUpstreamTokens: UpstreamTokens = {
  tokenFor: () =>
    Promise.reject(
      new ToolError(
        'There is no token of an identity provider here: no plugin of this route signs callers in with one.',
      ),
    ),
}
