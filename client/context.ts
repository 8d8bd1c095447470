// State shared by all steps of a login: options, HTTP access, known secrets, redirect listener and clock.
import type { Emit } from './events.ts'
import type { OAuthHttp } from './http.ts'
import type { AuthorizationRedirectDelegate } from './options.ts'
import type { ResolvedOptions } from './resolve-options.ts'
import type { Secrets } from './text.ts'

interface OpenedRedirect {
  readonly redirectUri: string
  readonly delegate: AuthorizationRedirectDelegate
  close(): Promise<void>
}

/** `before`: redirect URI of an earlier registration, reused if possible. */
export type OpenRedirect = (previous: string | undefined) => Promise<OpenedRedirect>

export interface ClientContext {
  readonly options: ResolvedOptions
  readonly http: OAuthHttp
  readonly secrets: Secrets
  readonly emit: Emit
  readonly now: () => number
  readonly openRedirect?: OpenRedirect | undefined
  /** The issuer, if it is known without metadata of the server. */
  readonly issuer?: string | undefined
}
