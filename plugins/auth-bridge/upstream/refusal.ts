// Maps error responses of identity providers to an UpstreamError with advice.
import { isObject } from '../../../core/plugin.ts'
import type { ProviderType } from './settings.ts'
import { UpstreamError, type UpstreamFault } from './upstream.ts'

export interface Explanation {
  readonly fix: string
  readonly fault?: UpstreamFault
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
const ENTRA_TENANT = 'check tenant, the Directory (tenant) ID in the Overview of the Microsoft Entra admin center.'
const OKTA_SERVER = 'In the Okta Admin Console, Security, API, your server'
const OKTA_GRANTS = `${APP.okta}, General, Grant type: allow Authorization Code, Refresh Token and Token Exchange.`
const AUTH0_API =
  'In the Auth0 Dashboard, Applications, APIs: no API has this identifier; check `audience` in `parameters`.'
const KEYCLOAK_EXCHANGE = `${APP.keycloak}, Settings: enable Standard token exchange, and add the audience to the client's scopes.`
const REGISTER = 'Register the redirect URI of the bridge with the application at the provider, exactly.'
const REDIRECT = ['', REGISTER, 'misconfigured'] as const
const SIGN_IN_AGAIN = 'The login has ended there: the person must sign in again.'

export const ENTRA_ERRORS: Readonly<Record<string, string>> = {
  50011: `${APP.entra}, Authentication, platform Web: add the redirect URI of the bridge exactly.`,
  65001: `${APP.entra}, API permissions: add what the scopes name and grant admin consent.`,
  90094: `${APP.entra}, API permissions: grant admin consent; users cannot consent in this tenant.`,
  650053: `The API has no such scope. Correct \`scopes\`. ${APP.entra}, API permissions lists the existing scopes.`,
  650057: `${APP.entra}, API permissions: add the API that the scopes name.`,
  700016: 'This tenant has no such application: check clientId, the Application (client) ID, and tenant.',
  7000215: `${APP.entra}, Certificates & secrets: set clientSecret to the Value, not its Secret ID.`,
  7000222: `The client secret has expired. ${APP.entra}, Certificates & secrets: set clientSecret to the Value of another.`,
  7000218: `Set clientSecret; or ${APP.entra}, Authentication: allow public client flows.`,
  90002: `There is no such tenant: ${ENTRA_TENANT}`,
  900023: `The tenant is not an id: ${ENTRA_TENANT}`,
  9010010:
    'Scopes of one request must be of one API, and `resource` must not be sent: check `scopes` and `parameters`.',
  28000: 'Scopes of several APIs in one request: get those of other APIs with ctx.upstreamToken.',
  70011: 'A scope has the wrong format for Entra: check `scopes`. Example: api://<id>/<scope>.',
  500113: `${APP.entra}, Authentication: add the platform Web with the redirect URI of the bridge.`,
  50105: 'In the Entra admin center, Enterprise applications, your application, Users and groups: assign the person.',
  50076: 'The person must sign in again with a second factor, which a Conditional Access policy requires.',
  53003: 'A Conditional Access policy blocks this sign-in: see the sign-in logs in the Microsoft Entra admin center.',
  50057: 'The account is disabled in Microsoft Entra.',
  70008: SIGN_IN_AGAIN,
  700082: SIGN_IN_AGAIN,
  50173: SIGN_IN_AGAIN,
}
const ENTRA_REFUSED = new Set(['50105', '50076', '53003', '50057', '70008', '700082', '50173'])

const GOOGLE_CLIENT = `${APP.google}, Clients: check clientId and clientSecret of an enabled client of type Web application.`
const KEYCLOAK_CLIENT = `${APP.keycloak}, Credentials: check clientId and clientSecret; Client authentication and Standard flow must be on.`

type Rule<Match> = readonly [match: Match, fix: string, fault?: UpstreamFault]

/** By the description of an error, before the rules for its code. */
const BY_TEXT: Readonly<Partial<Record<ProviderType, readonly Rule<RegExp>[]>>> = {
  okta: [
    [
      /policy evaluation failed/i,
      `${OKTA_SERVER}, Access Policies: add a rule for the application, its people and scopes.`,
      'refused',
    ],
    [
      /user is not assigned to the client application/i,
      `${APP.okta}, Assignments: assign the person, or a group of theirs.`,
      'refused',
    ],
    [
      /redirect_uri/,
      `${APP.okta}, General, Sign-in redirect URIs: add the redirect URI of the bridge exactly.`,
      'misconfigured',
    ],
  ],
  auth0: [
    [/connection/i, `${APP.auth0}, Connections: switch on the connection that people sign in with.`, 'misconfigured'],
    [
      /callback url mismatch/i,
      `${APP.auth0}, Settings, Allowed Callback URLs: add the redirect URI of the bridge exactly.`,
      'misconfigured',
    ],
    [/user is blocked/i, 'The user is blocked in the Auth0 Dashboard, User Management.', 'refused'],
    [
      /grant type .{0,100}not allowed/i,
      `${APP.auth0}, Settings, Advanced, Grant Types: allow Authorization Code and Refresh Token.`,
      'misconfigured',
    ],
    [/service not found|audience/i, AUTH0_API, 'misconfigured'],
    // Only as the whole text: `access_denied` with another text is about the person.
    [
      /^unauthorized$/i,
      `${APP.auth0}, Settings, Credentials: check clientSecret. Otherwise see Monitoring, Logs.`,
      'misconfigured',
    ],
  ],
  keycloak: [
    [
      /invalid parameter: redirect_uri|incorrect redirect_uri/i,
      `${APP.keycloak}, Settings, Valid redirect URIs: add the redirect URI of the bridge.`,
      'misconfigured',
    ],
    [/requested audience not available|standard token exchange/i, KEYCLOAK_EXCHANGE, 'misconfigured'],
    [/realm does not exist/i, 'There is no such realm: check the end of issuer, /realms/<name>.', 'misconfigured'],
  ],
}

const BY_CODE: Readonly<Partial<Record<ProviderType, readonly Rule<string>[]>>> = {
  google: [
    [
      'redirect_uri_mismatch',
      `${APP.google}, Clients: add the redirect URI of the bridge exactly to the authorized ones.`,
      'misconfigured',
    ],
    [
      'admin_policy_enforced',
      'A Workspace administrator must trust the application: Google Admin console, Security, API controls.',
      'misconfigured',
    ],
    [
      'org_internal',
      `The application is for its own organization only. ${APP.google}, Audience: make it External.`,
      'refused',
    ],
    ['invalid_client', GOOGLE_CLIENT],
    ['deleted_client', GOOGLE_CLIENT],
    ['disabled_client', GOOGLE_CLIENT],
    ['unauthorized_client', GOOGLE_CLIENT],
  ],
  github: [
    ['incorrect_client_credentials', `${APP.github}: check clientId and clientSecret.`],
    [
      'redirect_uri_mismatch',
      `${APP.github}: the authorization callback URL must be the redirect URI of the bridge.`,
      'misconfigured',
    ],
    ['application_suspended', 'GitHub has suspended the application: contact GitHub Support.', 'misconfigured'],
    ['bad_verification_code', 'The code was used or is older than 10 minutes: sign in again.'],
    ['bad_refresh_token', SIGN_IN_AGAIN],
    ['unverified_user_email', 'The person must verify the primary e-mail address at GitHub.', 'refused'],
  ],
  okta: [
    ['invalid_scope', `${OKTA_SERVER}, Scopes: add the scope, or leave it out of \`scopes\`.`],
    ['unsupported_grant_type', OKTA_GRANTS],
    ['unauthorized_client', OKTA_GRANTS],
    ['invalid_client', `${APP.okta}, General, Client Credentials: check clientId and clientSecret.`],
  ],
  auth0: [['invalid_client', `${APP.auth0}, Settings: check Client ID and Client Secret.`]],
  keycloak: [
    ['invalid_client', KEYCLOAK_CLIENT],
    ['unauthorized_client', KEYCLOAK_CLIENT],
    ['invalid_scope', `${APP.keycloak}, Client scopes: add the scope, or leave it out of \`scopes\`.`],
  ],
}

/** For all providers, by code. */
const ANY: readonly Rule<string>[] = [
  ['redirect_uri_mismatch', REGISTER, 'misconfigured'],
  ['invalid_grant', 'The code or token was used, expired or revoked: the person must sign in again.'],
  ['invalid_client', 'Check clientId and clientSecret; if both are right, set another authMethod.'],
  ['unauthorized_client', 'Allow the application the grants authorization_code and refresh_token.'],
  ['unsupported_grant_type', 'The provider does not support this grant: set another `exchange`.'],
  ['invalid_scope', 'The provider does not issue one of these scopes: correct `scopes`.'],
  ['invalid_target', 'Unknown resource or audience at the provider: check `parameters` and `scopes`.'],
  ['access_denied', 'The person declined, or is not assigned to the application at the provider.'],
  ['consent_required', SIGN_IN_AGAIN],
  ['interaction_required', SIGN_IN_AGAIN],
  ['login_required', SIGN_IN_AGAIN],
]

/** The advice for an error of a provider. */
export function explain({ type, code = '', description = '' }: ProviderRefusal): Explanation | undefined {
  const number = type === 'entra' ? /\bAADSTS(\d+)\b/.exec(description)?.[1] : undefined
  const entraFix = number === undefined ? undefined : ENTRA_ERRORS[number]
  if (number !== undefined && entraFix !== undefined)
    return { fix: entraFix, fault: ENTRA_REFUSED.has(number) ? 'refused' : 'misconfigured' }
  const names = (rule: Rule<string>) => rule[0] === code
  const found =
    BY_TEXT[type]?.find(([text]) => text.test(description)) ??
    BY_CODE[type]?.find(names) ??
    (code !== 'invalid_grant' && /redirect[_ ]uri/i.test(description) ? REDIRECT : ANY.find(names))
  if (!found) return undefined
  const [, fix, fault] = found
  return { fix, ...(fault && { fault }) }
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

/** RFC 6749, section 5.2; undefined for other bodies. */
export function refusalIn(body: unknown): Refusal | undefined {
  if (!isObject(body)) return undefined
  const code = textAt(body['error'])
  return code === undefined ? undefined : { code, description: textAt(body['error_description']) }
}

/** Redacts secrets, tokens and control characters; at most 400 characters. */
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

export interface RefusalContext {
  readonly type: ProviderType
  readonly what: string
  readonly secrets: readonly (string | undefined)[]
  readonly otherwise?: UpstreamFault
  /** For other scopes, `invalid_grant` may concern the scopes and not the user. */
  readonly forScopes?: boolean
}

export function refusalError({ code, description }: Refusal, context: RefusalContext): UpstreamError {
  const { type, what, secrets, otherwise = 'misconfigured', forScopes = false } = context
  const told = explain({ type, code, description })
  const shownCode = code === undefined ? undefined : safeText(code, secrets).slice(0, 100)
  const said = refusalWords({ code, description }, secrets)
  const ended = code === 'invalid_grant' && !forScopes
  const fault = ended ? 'refused' : (told?.fault ?? faultOf(code) ?? otherwise)
  return new UpstreamError(fault, `${what} refused: ${said || 'without a reason'}`, { code: shownCode, fix: told?.fix })
}

export const unreadable = (what: string, status: number): UpstreamError =>
  new UpstreamError('misconfigured', `${what} answers ${status} and says no reason`, {
    fix: 'check that the issuer or the endpoints are those of the provider, and the client id that of your application',
  })
