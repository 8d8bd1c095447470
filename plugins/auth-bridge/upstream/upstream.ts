// The company's identity provider, as the bridge needs it: the one interface that every kind of provider is brought to.
// index.ts makes one of the options.

export interface Person {
  /** Never used again for somebody else by this provider; not empty. */
  readonly subject: string
  readonly name?: string
  /** Only where the provider says that it is verified, or is the owner of its domain. In lower case. */
  readonly email?: string
  /** Undefined: the provider did not say; a rule about groups fails then, with that reason. */
  readonly groups: readonly string[] | undefined
  readonly claims: Readonly<Record<string, unknown>>
  /** Claims that are copied into issued tokens. Set by the development provider only. */
  readonly tokenClaims?: Readonly<Record<string, unknown>>
}

/** What the provider gave; none of it leaves this process but sealed. */
export interface ProviderTokens {
  readonly accessToken: string
  /** Milliseconds since the epoch; undefined: it does not expire. */
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
 * Why the provider, or what it answered, is of no use.
 *
 * `refused`: it says no to this person or this token, and will again (`invalid_grant`, a removed user, `access_denied`).
 * `misconfigured`: it says no to us (wrong secret, redirect URI, scope).
 * `unavailable`: it did not answer, or with a 5xx or 429.
 * `untrusted`: what came is not what was asked for (`iss`, `nonce`, signature, audience).
 */
export type UpstreamFault = 'refused' | 'misconfigured' | 'unavailable' | 'untrusted'

export interface FaultDetails extends ErrorOptions {
  readonly code?: string | undefined
  readonly fix?: string | undefined
}

/** Its message is for the operator's log; nothing of a token, code or secret is in it. */
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

/** By its name: where code is loaded late, a loader may have read this file twice. */
export const isUpstreamError = (thrown: unknown): thrown is UpstreamError =>
  thrown instanceof Error && thrown.name === 'UpstreamError' && 'fault' in thrown

/** One identity provider. Everything rejects with an UpstreamError. */
export interface Upstream {
  readonly label: string
  /** Where to send the browser. Its metadata is read with the first question, once for all who ask; a failure is not remembered. */
  begin(request: LoginRequest): Promise<{ readonly url: string; readonly underWay: LoginUnderWay }>
  finish(
    callback: URL,
    underWay: LoginUnderWay,
    request: Pick<LoginRequest, 'redirectUri' | 'state'>,
  ): Promise<SignedIn>
  /**
   * Asks whether this person may still sign in: a refresh where there is a refresh token, userinfo where there is none. An
   * answer with an ID token is whole: groups, an address or claims that it no longer has are gone. Of any other, what the
   * provider does not say stands as in `last`; so does all where it renews the tokens, and cannot say who they are of.
   */
  renew(last: SignedIn): Promise<SignedIn>
  /**
   * An access token with other scopes, for the same person: see `exchange` of the options. The refresh token beside it is the
   * one that the login goes on with from then on: the provider may take the one in `tokens` no more.
   */
  exchange(tokens: ProviderTokens, scope: string): Promise<ProviderTokens>
  revoke(tokens: ProviderTokens): Promise<void>
}
