// The client's error classes with stable codes and fixes.

import { printable, redactCredentials } from './text.ts'

/** Client error codes. Server error codes (RFC 6749 §5.2 and extensions) pass through unchanged. */
type AuthErrorCode =
  | 'invalid_options'
  | 'interaction_required'
  | 'interaction_in_progress'
  | 'login_timeout'
  | 'access_denied'
  | 'aborted'
  | 'unsupported_challenge'
  | 'invalid_resource_metadata'
  | 'resource_mismatch'
  | 'invalid_server_metadata'
  | 'no_authorization_server'
  | 'issuer_mismatch'
  | 'issuer_changed'
  | 'pkce_unsupported'
  | 'redirected'
  | 'insecure_endpoint'
  | 'blocked_address'
  | 'client_information_required'
  | 'registration_rejected'
  | 'registration_callback_failed'
  | 'state_mismatch'
  | 'malformed_response'
  | 'invalid_grant'
  | 'insufficient_scope'
  | 'auth_storm'
  | 'temporarily_unavailable'
  | 'cache_failed'
  | 'login_failed'
  | 'assertion_failed'
  | 'client_authentication_failed'
  | 'unsupported_token_type'
  | (string & {})

/** The setting that solves an error: an option with its value, or a session method. Programs print their own flag for it. */
export type Setting =
  | { readonly option: string; readonly value: unknown }
  | { readonly method: 'login' | 'forgetClient'; readonly url: string }

/** `text` is followed by the setting. */
export type Fix = string | (Setting & { readonly text: string })

export const settingText = (setting: Setting): string =>
  'option' in setting ? `set ${setting.option}: ${JSON.stringify(setting.value)}` : `session.${setting.method}()`

interface AuthErrorOptions {
  readonly code: AuthErrorCode
  /** Suggested fix, appended to the message. */
  readonly fix?: Fix | undefined
  /** The same call can succeed later. Default false. */
  readonly retryable?: boolean | undefined
  readonly cause?: unknown
}

const MAX_MESSAGE = 2_000

const redact = (text: string): string => printable(redactCredentials(text), MAX_MESSAGE)

/** Prevents the official client from treating this error as a legacy server. */
const AUTH_SEAM = Symbol.for('mcp.authSeamEscape')

/** An authorization error, named `UnauthorizedError`. Contains no token, code, secret, verifier or assertion. */
export class AuthError extends Error {
  override readonly name = 'UnauthorizedError'
  readonly code: AuthErrorCode
  readonly retryable: boolean
  /** Suggested fix, also at the end of the message. */
  readonly fix: string | undefined
  /** Structured part of `fix`. */
  readonly setting: Setting | undefined
  readonly [AUTH_SEAM] = true

  constructor(message: string, { code, fix, retryable = false, cause }: AuthErrorOptions) {
    const setting = typeof fix === 'object' ? fix : undefined
    const advice = setting ? `${setting.text} ${settingText(setting)}` : fix
    super(redact(advice === undefined ? message : `${message}; ${advice}`), cause === undefined ? undefined : { cause })
    this.code = code
    this.retryable = retryable
    this.fix = typeof advice === 'string' ? redact(advice) : undefined
    this.setting = setting
  }

  /** Recognizes AuthErrors of other copies of this package. */
  static is(thrown: unknown): thrown is AuthError {
    return thrown instanceof Error && (thrown as { [AUTH_SEAM]?: unknown })[AUTH_SEAM] === true && 'code' in thrown
  }
}

/** Calls a function of the options. Other errors are wrapped, because clients treat a TypeError of a fetch as a network failure. */
export async function callOption<T>(
  message: string,
  details: Pick<AuthErrorOptions, 'code' | 'fix'>,
  work: () => Promise<T> | T,
): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw AuthError.is(cause) ? cause : new AuthError(message, { ...details, cause })
  }
}

/** A login is required, but the options forbid the client to start it. Contains the authorization URL and state. */
export class InteractionRequiredError extends AuthError {
  readonly authorizationUrl: string
  readonly state: string

  constructor(message: string, flow: { authorizationUrl: string; state: string; fix: string }) {
    super(message, { code: 'interaction_required', fix: flow.fix })
    this.authorizationUrl = flow.authorizationUrl
    this.state = flow.state
  }
}

/** The authorization server refused to register the client (RFC 7591 §3.2.2). */
export class RegistrationRejectedError extends AuthError {
  readonly status: number
  /** Server error code, such as `invalid_redirect_uri`. */
  readonly error: string | undefined
  /** `error_description` of a JSON response. */
  readonly errorDescription: string | undefined
  /** The submitted metadata without secrets. */
  readonly submitted: Readonly<Record<string, unknown>>

  constructor(
    message: string,
    details: Pick<RegistrationRejectedError, 'status' | 'error' | 'errorDescription' | 'submitted'> & {
      readonly fix: string
    },
  ) {
    super(message, { code: 'registration_rejected', fix: details.fix, retryable: details.status >= 500 })
    this.status = details.status
    this.error = details.error
    this.errorDescription = details.errorDescription
    this.submitted = details.submitted
  }
}

type Scrub = (text: string) => string

const UNSCRUBBED = new Set(['authorizationUrl', 'state'])

const MAX_DEPTH = 4

function containsSecret(value: unknown, scrub: Scrub, depth = 0): boolean {
  if (typeof value === 'string') return scrub(value) !== value
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return false
  return Object.getOwnPropertyNames(value).some(name => {
    const { value: own } = Object.getOwnPropertyDescriptor(value, name) ?? {}
    // `stack` is a getter in newer engines.
    return containsSecret(name === 'stack' ? (value as Error).stack : own, scrub, depth + 1)
  })
}

export function scrubValue(value: unknown, scrub: Scrub): unknown {
  if (typeof value === 'string') return scrub(value)
  if (Array.isArray(value)) return value.map(one => scrubValue(one, scrub))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, scrubValue(one, scrub)]))
}

function scrubCause(cause: unknown, scrub: Scrub): unknown {
  if (AuthError.is(cause)) return scrubError(cause, scrub)
  if (!containsSecret(cause, scrub)) return cause
  if (!(cause instanceof Error)) return '[redacted]'
  const { name, code } = cause as Error & { readonly code?: unknown }
  return Object.assign(new Error(scrub(cause.message)), { name, ...(code !== undefined && { code }) })
}

export function scrubError<T>(thrown: T, scrub: Scrub): T {
  if (!AuthError.is(thrown)) return thrown
  for (const name of Object.getOwnPropertyNames(thrown)) {
    const property = Object.getOwnPropertyDescriptor(thrown, name)
    if (!property?.writable || UNSCRUBBED.has(name) || name === 'stack') continue
    const value = name === 'cause' ? scrubCause(property.value, scrub) : scrubValue(property.value, scrub)
    if (value !== property.value) Object.defineProperty(thrown, name, { ...property, value })
  }
  if (thrown.stack !== undefined) thrown.stack = scrub(thrown.stack)
  return thrown
}
