// `ctx.upstreamToken`: its type, and its value for one call and on routes without auth-bridge.
import { type CallContext, ToolError, type User } from '../../core/index.ts'
import type { Call, McpRoute } from '../../core/plugin.ts'

export interface UpstreamTokenRequest {
  /** Scopes, separated by spaces. Default: those of the caller's login. */
  readonly scope?: string
  /** A token that the API refused. It is replaced by a new one. */
  readonly rejected?: string
}

/** The caller and the URL for a new sign-in. */
export interface UpstreamCaller {
  readonly user: User | undefined
  readonly route: McpRoute
  readonly params: Readonly<Record<string, string>>
}

/** Members that auth-bridge adds to `ctx`. */
export interface UpstreamContext {
  /**
   * The caller's access token of the company's identity provider. Never return or log it. Rejects without a token, and
   * after the login ended: rethrow, so that the client signs in again.
   */
  upstreamToken(request?: UpstreamTokenRequest): Promise<string>
}

const NONE = 'This route has no tokens of an identity provider: no plugin of the route signs in callers with one.'
const NONE_IN_RUN =
  'Task runs have no token of the identity provider, because the caller may have lost access. Request the token in `task.before`.'

export const NO_UPSTREAM: UpstreamContext = { upstreamToken: () => Promise.reject(new ToolError(NONE)) }

export const upstreamTokenOf =
  (tokenFor: (caller: UpstreamCaller, request: UpstreamTokenRequest) => Promise<string>) =>
  (call: Call, ctx: CallContext): UpstreamContext['upstreamToken'] =>
  async (request = {}) => {
    const { route, params } = call.offer
    // The caller may have lost access since the task was created, and a run does not check access again.
    if (call.deferred) throw new ToolError(NONE_IN_RUN)
    // The provider often reports an ended login only in its response, and the client needs the HTTP status for it.
    const release = call.hold()
    try {
      return await tokenFor({ user: ctx.user, route, params }, request)
    } finally {
      // Runs after the handler had a chance to rethrow.
      setImmediate(release)
    }
  }
