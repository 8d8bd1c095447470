// What every step of a login shares: the options, the one way out to authorization servers, the secrets to hide, the
// listener and the clock. No step keeps state of its own beside it.
import type { Emit } from './events.ts'
import type { OAuthHttp } from './http.ts'
import type { ResolvedOptions } from './resolve-options.ts'
import type { Secrets } from './secrets.ts'

export interface ClientContext {
  readonly options: ResolvedOptions
  readonly http: OAuthHttp
  readonly secrets: Secrets
  readonly emit: Emit
  /** Milliseconds since the epoch. */
  readonly now: () => number
}
