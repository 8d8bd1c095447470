// The interface of all identity provider types.

export interface Person {
  /** Unique and never reused by this provider; not empty. */
  readonly subject: string
  readonly name?: string
  /** Verified, or owned by the provider's domain. Lower case. */
  readonly email?: string
  /** Undefined if unknown: group rules then fail. */
  readonly groups: readonly string[] | undefined
  readonly claims: Readonly<Record<string, unknown>>
  /** Claims copied into issued tokens. Development provider only. */
  readonly tokenClaims?: Readonly<Record<string, unknown>>
}

/** Provider tokens. They are encrypted outside of this process. */
export interface ProviderTokens {
  readonly accessToken: string
  /** Milliseconds since the epoch; undefined: no expiry. */
  readonly expiresAt?: number
  readonly refreshToken?: string
  readonly idToken?: string
  readonly scopes: readonly string[]
}

export interface SignedIn {
  readonly person: Person
  readonly tokens: ProviderTokens
}

export interface LoginUnderWay {
  readonly codeVerifier: string
  readonly nonce?: string
}

export interface LoginRequest {
  readonly redirectUri: string
  readonly state: string
  readonly loginHint?: string
  readonly prompt?: 'login' | 'select_account'
}

/**
 * Fault of a provider error.
 *
 * `refused`: permanent for this user or token (`invalid_grant`, removed user, `access_denied`).
 * `misconfigured`: wrong secret, redirect URI or scope.
 * `unavailable`: no response, 5xx or 429.
 * `untrusted`: invalid response (`iss`, `nonce`, signature, audience).
 */
export type UpstreamFault = 'refused' | 'misconfigured' | 'unavailable' | 'untrusted'

interface FaultDetails extends ErrorOptions {
  readonly code?: string | undefined
  readonly fix?: string | undefined
}

/** For the operator's log; contains no token, code or secret. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly fault: UpstreamFault
  readonly code: string | undefined
  readonly fix: string | undefined

  constructor(fault: UpstreamFault, message: string, { code, fix, ...options }: FaultDetails = {}) {
    super(message, options)
    this.fault = fault
    this.code = code
    this.fix = fix
  }
}

/** Compares the name, because a loader may load this file twice. */
export const isUpstreamError = (thrown: unknown): thrown is UpstreamError =>
  thrown instanceof Error && thrown.name === 'UpstreamError' && 'fault' in thrown

export interface Upstream {
  readonly label: string
  /** Returns the sign-in URL. Metadata is fetched once on demand; failures are not cached. */
  begin(request: LoginRequest): Promise<{ readonly url: string; readonly underWay: LoginUnderWay }>
  finish(
    callback: URL,
    underWay: LoginUnderWay,
    request: Pick<LoginRequest, 'redirectUri' | 'state'>,
  ): Promise<SignedIn>
  /** Checks the user by refresh token or userinfo. An ID token replaces all data; otherwise missing data is kept. */
  renew(last: SignedIn): Promise<SignedIn>
  /** Requests a token with other scopes. The returned refresh token replaces the one in `tokens`. */
  exchange(tokens: ProviderTokens, scope: string): Promise<ProviderTokens>
  revoke(tokens: ProviderTokens): Promise<void>
}
