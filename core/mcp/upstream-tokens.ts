// The token of a caller at the company's own identity provider, for tools that call the company's API as them: the
// interface of the slot `upstreamTokens`.
import type { Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { UpstreamTokenRequest } from './define.ts'
import { ToolError } from './tool-error.ts'

/** Who calls, and at which address: its client is told there to sign in again. */
export interface UpstreamCaller {
  readonly user: User | undefined
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

/** The slot `upstreamTokens`. */
export interface UpstreamTokens {
  /**
   * An access token of the provider for this user. Rejects with what `loginEnded` of `mcp-host/auth` makes, a HostError
   * `unauthorized` with its challenge, where they must sign in again; with `unavailable` where the provider does not answer;
   * and with a ToolError that says what to change where it gives no such token. It is for the tool alone: never for a client,
   * never for a log.
   * It settles within seconds: meanwhile the answer of the call becomes no stream, so that a client can still be told by 401.
   */
  tokenFor(caller: UpstreamCaller, request: UpstreamTokenRequest, signal: AbortSignal): Promise<string>
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
