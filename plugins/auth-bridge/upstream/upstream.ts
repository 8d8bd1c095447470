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
export type UpstreamFault = 'refused' | 'misconfigured' | 'unavailable' | 'untrusted'

interface FaultDetails extends ErrorOptions {
  readonly code?: string | undefined
  readonly fix?: string | undefined
}

/** An error for the operator's log; contains no token, code or secret. */
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

/** Compares the name, because a loader can load this file twice. */
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

export interface Refusal {
  readonly code?: string | undefined
  readonly description?: string | undefined
}

export interface ProviderRefusal extends Refusal {
  readonly type: ProviderType
}

const APP = {
  entra: 'In the Microsoft Entra admin center, App registrations, your application',
  okta: 'In the Okta Admin Console, Applications, your application',
  auth0: 'In the Auth0 Dashboard, Applications, your application',
  keycloak: 'In the Keycloak admin console, Clients, your client',
  google: 'In the Google Cloud console, Google Auth Platform',
  github: 'In GitHub, Settings, Developer settings, your application',
} as const
const OKTA_SERVER = 'In the Okta Admin Console, Security, API, your server'
const EXACTLY = 'add the redirect URI of the bridge exactly.'
const CREDENTIALS = 'check clientId and clientSecret'
const SCOPES = 'add the scope, or leave it out of `scopes`.'
const SIGN_IN_AGAIN = 'The login has ended there: the person must sign in again.'

/** Advice by a pattern of `code: description`, grouped by fault. `unsure`: the fault depends on the request. */
type Rules = Partial<Record<'refused' | 'misconfigured' | 'unsure', Readonly<Record<string, string>>>>

/** Advice by AADSTS numbers. */
export const ENTRA_ERRORS: Required<Omit<Rules, 'unsure'>> = {
  refused: {
    '50105':
      'In the Entra admin center, Enterprise applications, your application, Users and groups: assign the person.',
    '50076': 'The person must sign in again with a second factor, which a Conditional Access policy requires.',
    '53003':
      'A Conditional Access policy blocks this sign-in: see the sign-in logs in the Microsoft Entra admin center.',
    '50057': 'The account is disabled in Microsoft Entra.',
    '70008|700082|50173': SIGN_IN_AGAIN,
  },
  misconfigured: {
    '50011|500113': `${APP.entra}, Authentication, platform Web: ${EXACTLY}`,
    '65001|90094|650057': `${APP.entra}, API permissions: add the permissions of the scopes and grant admin consent.`,
    '650053|70011': 'The API has no such scope: correct `scopes`. Example: api://<id>/<scope>.',
    '700016': 'The tenant does not have this application: check clientId, the Application (client) ID, and tenant.',
    '7000215': `${APP.entra}, Certificates & secrets: set clientSecret to the Value, not its Secret ID.`,
    '7000222': `The client secret has expired. ${APP.entra}, Certificates & secrets: set clientSecret to another Value.`,
    '7000218': `Set clientSecret; or ${APP.entra}, Authentication: allow public client flows.`,
    '90002|900023':
      'This tenant does not exist: check tenant, the Directory (tenant) ID in the Overview of Microsoft Entra.',
    '9010010|28000': 'Scopes of one request must be of one API, without `resource`: check `scopes` and `parameters`.',
  },
}

const numbered = (rules: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(rules).map(([numbers, fix]) => [`\\bAADSTS(?:${numbers})\\b`, fix]))

const RULES: Readonly<Partial<Record<ProviderType, Rules>>> = {
  entra: { refused: numbered(ENTRA_ERRORS.refused), misconfigured: numbered(ENTRA_ERRORS.misconfigured) },
  google: {
    refused: {
      '^org_internal:': `The application is for its own organization only. ${APP.google}, Audience: make it External.`,
    },
    misconfigured: {
      '^redirect_uri_mismatch:': `${APP.google}, Clients: ${EXACTLY}`,
      '^admin_policy_enforced:':
        'A Workspace administrator must trust the application: Google Admin console, Security, API controls.',
    },
    unsure: {
      '^(?:invalid|deleted|disabled|unauthorized)_client:': `${APP.google}, Clients: ${CREDENTIALS} of an enabled client of type Web application.`,
    },
  },
  github: {
    refused: { '^unverified_user_email:': 'The person must verify the primary e-mail address at GitHub.' },
    misconfigured: {
      '^redirect_uri_mismatch:': `${APP.github}: the authorization callback URL must be the redirect URI of the bridge.`,
      '^application_suspended:': 'GitHub has suspended the application: contact GitHub Support.',
    },
    unsure: {
      '^incorrect_client_credentials:': `${APP.github}: ${CREDENTIALS}.`,
      '^bad_(?:verification_code|refresh_token):': 'The code or token was used or is too old: sign in again.',
    },
  },
  okta: {
    refused: {
      'policy evaluation failed': `${OKTA_SERVER}, Access Policies: add a rule for the application, its people and scopes.`,
      'user is not assigned to the client application': `${APP.okta}, Assignments: assign the person, or a group of theirs.`,
    },
    misconfigured: { redirect_uri: `${APP.okta}, General, Sign-in redirect URIs: ${EXACTLY}` },
    unsure: {
      '^invalid_scope:': `${OKTA_SERVER}, Scopes: ${SCOPES}`,
      '^(?:unsupported_grant_type|unauthorized_client):': `${APP.okta}, General, Grant type: allow Authorization Code, Refresh Token and Token Exchange.`,
      '^invalid_client:': `${APP.okta}, General, Client Credentials: ${CREDENTIALS}.`,
    },
  },
  auth0: {
    refused: { 'user is blocked': 'The user is blocked in the Auth0 Dashboard, User Management.' },
    misconfigured: {
      connection: `${APP.auth0}, Connections: switch on the connection that people sign in with.`,
      'callback url mismatch': `${APP.auth0}, Settings, Allowed Callback URLs: ${EXACTLY}`,
      'grant type .{0,100}not allowed': `${APP.auth0}, Settings, Advanced, Grant Types: allow Authorization Code and Refresh Token.`,
      'service not found|audience':
        'In the Auth0 Dashboard, Applications, APIs: no API has this identifier; check `audience` in `parameters`.',
      // Matches only the whole text: `access_denied` with another text is about the user.
      '^\\w*: unauthorized$': `${APP.auth0}, Settings, Credentials: check clientSecret. Otherwise see Monitoring, Logs.`,
    },
    unsure: { '^invalid_client:': `${APP.auth0}, Settings: ${CREDENTIALS}.` },
  },
  keycloak: {
    misconfigured: {
      '(?:invalid parameter:|incorrect) redirect_uri': `${APP.keycloak}, Settings, Valid redirect URIs: ${EXACTLY}`,
      'requested audience not available|standard token exchange': `${APP.keycloak}, Settings: enable Standard token exchange, and add the audience to the client's scopes.`,
      'realm does not exist': 'This realm does not exist: check the end of issuer, /realms/<name>.',
    },
    unsure: {
      '^(?:invalid|unauthorized)_client:': `${APP.keycloak}, Credentials: ${CREDENTIALS}; Client authentication and Standard flow must be on.`,
      '^invalid_scope:': `${APP.keycloak}, Client scopes: ${SCOPES}`,
    },
  },
}

/** Rules for all providers, which apply after the provider's own rules. */
const ANY: readonly Rules[] = [
  { unsure: { '^invalid_grant:': 'The code or token was used, expired or revoked: the person must sign in again.' } },
  {
    misconfigured: {
      'redirect[_ ]uri': 'Register the redirect URI of the bridge with the application at the provider, exactly.',
    },
  },
  {
    unsure: {
      '^invalid_client:': 'Check clientId and clientSecret; if both are right, set another authMethod.',
      '^unauthorized_client:': 'Allow the application the grants authorization_code and refresh_token.',
      '^unsupported_grant_type:': 'The provider does not support this grant: set another `exchange`.',
      '^invalid_scope:': 'The provider does not issue one of these scopes: correct `scopes`.',
      '^invalid_target:': 'Unknown resource or audience at the provider: check `parameters` and `scopes`.',
      '^access_denied:': 'The person declined, or is not assigned to the application at the provider.',
      '^(?:consent|interaction|login)_required:': SIGN_IN_AGAIN,
    },
  },
]

/** Returns the advice for an error of a provider. */
export function explain({
  type,
  code = '',
  description = '',
}: ProviderRefusal): { readonly fix: string; readonly fault?: UpstreamFault } | undefined {
  const text = `${code}: ${description}`
  for (const rules of [RULES[type] ?? {}, ...ANY]) {
    for (const fault of ['refused', 'misconfigured', 'unsure'] as const) {
      const found = Object.entries(rules[fault] ?? {}).find(([pattern]) => new RegExp(pattern, 'i').test(text))
      if (found) return { fix: found[1], ...(fault !== 'unsure' && { fault }) }
    }
  }
  return undefined
}

const MAX_TEXT = 400

const REFUSAL_CODES =
  /^(?:access_denied|(?:account_selection|consent|interaction|login)_required|bad_(?:refresh_token|verification_code)|expired_token|invalid_grant|unauthorized)$/
const OUTAGE_CODES = /^(?:server_error|temporarily_unavailable)$/

function faultOf(code = ''): UpstreamFault | undefined {
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

export function refusalWords({ code, description }: Refusal, secrets: readonly (string | undefined)[]): string {
  const name = code === undefined ? '' : safeText(code, secrets).slice(0, 100)
  const words = description === undefined ? '' : safeText(description, secrets)
  const isTwice = words.toLowerCase().startsWith(name.toLowerCase())
  return isTwice ? words : [name, words].filter(Boolean).join(': ')
}

interface RefusalContext {
  readonly type: ProviderType
  readonly what: string
  readonly secrets: readonly (string | undefined)[]
  readonly otherwise?: UpstreamFault
  /** True for requests with other scopes, where `invalid_grant` can concern the scopes and not the user. */
  readonly forScopes?: boolean
}

export function refusalError({ code, description }: Refusal, context: RefusalContext): UpstreamError {
  const { type, what, secrets, otherwise = 'misconfigured', forScopes = false } = context
  const hint = explain({ type, code, description })
  const shownCode = code === undefined ? undefined : safeText(code, secrets).slice(0, 100)
  const reason = refusalWords({ code, description }, secrets)
  const ended = code === 'invalid_grant' && !forScopes
  const fault = ended ? 'refused' : (hint?.fault ?? faultOf(code) ?? otherwise)
  return new UpstreamError(fault, `${what} refused: ${reason || 'without a reason'}`, {
    code: shownCode,
    fix: hint?.fix,
  })
}

export const unreadable = (what: string, status: number): UpstreamError =>
  new UpstreamError('misconfigured', `${what} answers ${status} and says no reason`, {
    fix: 'check that the issuer or the endpoints belong to the provider, and the client id to your application',
  })
