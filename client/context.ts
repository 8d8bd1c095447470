// What every step of a login shares: the options, the one way out to authorization servers, the secrets to hide, the
// listener and the clock. No step keeps state of its own beside it.
import type { Emit } from './events.ts'
import type { OAuthHttp } from './http.ts'
import type { AuthorizationRedirectDelegate } from './options.ts'
import type { ResolvedOptions } from './resolve-options.ts'
import type { Secrets } from './secrets.ts'

export interface OpenedRedirect {
  readonly redirectUri: string
  readonly delegate: AuthorizationRedirectDelegate
  close(): Promise<void>
}

/** `before`: of an earlier registration, which holds for this redirect URI alone; used again where that can be. */
export type OpenRedirect = (before: string | undefined) => Promise<OpenedRedirect>

export interface ClientContext {
  readonly options: ResolvedOptions
  readonly http: OAuthHttp
  readonly secrets: Secrets
  readonly emit: Emit
  readonly now: () => number
  readonly openRedirect?: OpenRedirect | undefined
}
