// The interface of all identity provider types, and their errors with advice.
import { isObject } from '../../../core/plugin.ts'
import type { ProviderType } from './settings.ts'

export interface Person {
  /** Unique, not empty, and never reused by this provider. */
  readonly subject: string
  readonly name?: string
  /** A verified address, or one owned by the provider's domain. Lower case. */
  readonly email?: string
  /** Undefined if unknown; group rules then fail. */
  readonly groups: readonly string[] | undefined
  readonly claims: Readonly<Record<string, unknown>>
  /** Claims copied into issued tokens, by the development provider only. */
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
export type FailureKind = 'refused' | 'misconfigured' | 'unavailable' | 'untrusted'

interface ErrorDetails extends ErrorOptions {
  readonly code?: string | undefined
  readonly fix?: string | undefined
}

/** An error for the operator's log; contains no token, code or secret. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly fault: FailureKind
  readonly code: string | undefined
  readonly fix: string | undefined

  constructor(fault: FailureKind, message: string, { code, fix, ...options }: ErrorDetails = {}) {
    super(message, options)
    this.fault = fault
    this.code = code
    this.fix = fix
  }
}

/** Compares the name, because a loader can load this file twice. */
export const isUpstreamError = (thrown: unknown): thrown is UpstreamError =>
  thrown instanceof Error && thrown.name === 'UpstreamError' && 'fault' in thrown

export interface Upstream {
  readonly label: string
  /** Returns the sign-in URL. Metadata is fetched once on demand; failures are not cached. */
  startLogin(request: LoginRequest): Promise<{ readonly url: string; readonly underWay: LoginUnderWay }>
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

export interface Refusal {
  readonly code?: string | undefined
  readonly description?: string | undefined
}

export interface ProviderRefusal extends Refusal {
  readonly type: ProviderType
}

/** Vendor errors by fault, as patterns of `code: description`. The pages in docs/bridge have the advice. */
export const VENDOR_ERRORS: Readonly<
  Partial<Record<ProviderType, Readonly<Partial<Record<'refused' | 'misconfigured', RegExp>>>>>
> = {
  entra: {
    refused: /\bAADSTS(?:50057|50076|50105|50173|53003|70008|700082)\b/,
    misconfigured:
      /\bAADSTS(?:28000|50011|500113|65001|650053|650057|70011|700016|7000215|7000218|7000222|90002|900023|90094|9010010)\b/,
  },
  google: { refused: /^org_internal:/, misconfigured: /^(?:redirect_uri_mismatch|admin_policy_enforced):/ },
  github: { refused: /^unverified_user_email:/, misconfigured: /^(?:redirect_uri_mismatch|application_suspended):/ },
  okta: {
    refused: /policy evaluation failed|user is not assigned to the client application/i,
    misconfigured: /redirect_uri/,
  },
  auth0: {
    refused: /user is blocked/i,
    // `Unauthorized` only as the whole text: `access_denied` with another text is about the user.
    misconfigured:
      /connection|callback url mismatch|grant type .{0,100}not allowed|service not found|audience|^\w*: unauthorized$/i,
  },
  keycloak: {
    misconfigured:
      /(?:invalid parameter:|incorrect) redirect_uri|requested audience not available|standard token exchange|realm does not exist/i,
  },
}

/** Advice for all providers, by a pattern of `code: description`. Without `fault`, the request determines the fault. */
const ADVICE: readonly (readonly [pattern: RegExp, fix: string, fault?: FailureKind])[] = [
  [/^(?:invalid_grant|bad_\w+_(?:code|token)):/, 'The code or token was used, expired or revoked: sign in again.'],
  [/redirect[_ ]uri/i, 'Register the exact redirect URI of the bridge at the provider.', 'misconfigured'],
  [
    /^(?:(?:invalid|deleted|disabled)_client|incorrect_client_credentials):/,
    'Check clientId and clientSecret; if both are right, set another authMethod.',
  ],
  [/^unauthorized_client:/, 'Allow the application the grants authorization_code and refresh_token.'],
  [/^unsupported_grant_type:/, 'The provider does not support this grant: set another `exchange`.'],
  [/^invalid_scope:/, 'The provider does not issue one of these scopes: correct `scopes`.'],
  [/^invalid_target:/, 'Unknown resource or audience at the provider: check `parameters` and `scopes`.'],
  [/^access_denied:/, 'The user denied access, or is not assigned to the application at the provider.'],
  [/^(?:consent|interaction|login)_required:/, 'The login at the provider has ended: the user must sign in again.'],
]

/** Returns the advice for an error of a provider, with its page. */
export function explain({ type, code = '', description = '' }: ProviderRefusal) {
  const text = `${code}: ${description}`
  const page = `See docs/bridge/${type === 'oauth' ? 'oidc' : type}.md#troubleshooting.`
  const own = (['refused', 'misconfigured'] as const).find(fault => VENDOR_ERRORS[type]?.[fault]?.test(text))
  if (own) return { fix: page, fault: own }
  const [, advice, fault] = ADVICE.find(([pattern]) => pattern.test(text)) ?? []
  return advice === undefined ? undefined : { fix: `${advice} ${page}`, fault }
}

const MAX_TEXT = 400

const REFUSAL_CODES =
  /^(?:access_denied|(?:account_selection|consent|interaction|login)_required|bad_(?:refresh_token|verification_code)|expired_token|invalid_grant|unauthorized)$/
const OUTAGE_CODES = /^(?:server_error|temporarily_unavailable)$/

function kindOf(code = ''): FailureKind | undefined {
  if (REFUSAL_CODES.test(code)) return 'refused'
  return OUTAGE_CODES.test(code) ? 'unavailable' : undefined
}

const textAt = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Reads an error response (RFC 6749, section 5.2); undefined for other bodies. */
export function refusalIn(body: unknown): Refusal | undefined {
  if (!isObject(body)) return undefined
  const code = textAt(body['error'])
  return code === undefined ? undefined : { code, description: textAt(body['error_description']) }
}

/** Redacts secrets, tokens and control characters, and limits the text to 400 characters. */
export function safeText(text: string, secrets: readonly (string | undefined)[] = []): string {
  let safe = text
  for (const secret of secrets) if (secret !== undefined && secret !== '') safe = safe.replaceAll(secret, '…')
  return safe
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/[\w~+=-]{40,}/g, '…')
    .slice(0, MAX_TEXT)
}

export function refusalText({ code, description }: Refusal, secrets: readonly (string | undefined)[]): string {
  const name = code === undefined ? '' : safeText(code, secrets).slice(0, 100)
  const words = description === undefined ? '' : safeText(description, secrets)
  const isTwice = words.toLowerCase().startsWith(name.toLowerCase())
  return isTwice ? words : [name, words].filter(Boolean).join(': ')
}

interface RefusalContext {
  readonly type: ProviderType
  readonly what: string
  readonly secrets: readonly (string | undefined)[]
  readonly otherwise?: FailureKind
  /** True for requests with other scopes, where `invalid_grant` can concern the scopes and not the user. */
  readonly forScopes?: boolean
}

export function refusalError({ code, description }: Refusal, context: RefusalContext): UpstreamError {
  const { type, what, secrets, otherwise = 'misconfigured', forScopes = false } = context
  const hint = explain({ type, code, description })
  const shownCode = code === undefined ? undefined : safeText(code, secrets).slice(0, 100)
  const reason = refusalText({ code, description }, secrets)
  const ended = code === 'invalid_grant' && !forScopes
  const fault = ended ? 'refused' : (hint?.fault ?? kindOf(code) ?? otherwise)
  return new UpstreamError(fault, `${what} refused: ${reason || 'without a reason'}`, {
    code: shownCode,
    fix: hint?.fix,
  })
}

export const unreadable = (what: string, status: number): UpstreamError =>
  new UpstreamError('misconfigured', `${what} responded with ${status} and gave no reason`, {
    fix: 'check that the issuer or the endpoints belong to the provider, and the client id to your application',
  })
