// Maps the errors of identity providers to advice for the operator.
import type { ProviderType } from './kinds.ts'
import type { UpstreamFault } from './upstream.ts'

export interface Explanation {
  /** The fix, and the console to make it in. */
  readonly fix: string
  /** Set if the error code alone suggests another fault. */
  readonly fault?: UpstreamFault
}

interface Row extends Explanation {
  readonly types?: readonly ProviderType[]
  /** All of these must match. */
  readonly code?: RegExp
  readonly text?: RegExp
}

/** A row for one provider type. */
const row = (type: ProviderType, match: Pick<Row, 'code' | 'text'>, fix: string, fault?: UpstreamFault): Row => ({
  types: [type],
  ...match,
  fix,
  ...(fault && { fault }),
})

const ENTRA_APP = 'In the Microsoft Entra admin center, App registrations, your application'

const entra = (number: string, fix: string, fault?: UpstreamFault) =>
  row('entra', { text: new RegExp(`\\bAADSTS${number}\\b`) }, fix, fault)

const ENTRA: readonly Row[] = [
  entra(
    '50011',
    `${ENTRA_APP}, Authentication, platform Web: add the redirect URI of the bridge exactly.`,
    'misconfigured',
  ),
  entra(
    '50105',
    'In the Microsoft Entra admin center, Enterprise applications, your application, Users and groups: assign the person, or a group of theirs.',
    'refused',
  ),
  entra('65001', `${ENTRA_APP}, API permissions: add what the scopes name and grant admin consent.`, 'misconfigured'),
  entra(
    '90094',
    `${ENTRA_APP}, API permissions: grant admin consent; users cannot consent in this tenant.`,
    'misconfigured',
  ),
  entra(
    '650053',
    `The API has no such scope. Correct \`scopes\`. ${ENTRA_APP}, API permissions lists the existing scopes.`,
    'misconfigured',
  ),
  entra('650057', `${ENTRA_APP}, API permissions: add the API that the scopes name.`, 'misconfigured'),
  entra(
    '700016',
    'There is no such application in this tenant: check clientId, the Application (client) ID, and tenant.',
    'misconfigured',
  ),
  entra(
    '7000215',
    `${ENTRA_APP}, Certificates & secrets: create a client secret and set clientSecret to its Value, not its Secret ID.`,
    'misconfigured',
  ),
  entra(
    '7000222',
    `The client secret has expired. ${ENTRA_APP}, Certificates & secrets: create another and set clientSecret to its Value.`,
    'misconfigured',
  ),
  entra('7000218', `Set clientSecret; or ${ENTRA_APP}, Authentication: allow public client flows.`, 'misconfigured'),
  entra(
    '90002',
    'There is no such tenant: check tenant, the Directory (tenant) ID in the Overview of the Microsoft Entra admin center.',
    'misconfigured',
  ),
  entra(
    '900023',
    'The tenant is not an id: check tenant, the Directory (tenant) ID in the Overview of the Microsoft Entra admin center.',
    'misconfigured',
  ),
  entra(
    '9010010',
    'Scopes of one request must be of one API, and `resource` must not be sent: check `scopes` and `parameters`.',
    'misconfigured',
  ),
  entra(
    '28000',
    'Scopes of several APIs in one request: name scopes of one API in `scopes`, and get the others with ctx.upstreamToken.',
    'misconfigured',
  ),
  entra(
    '70011',
    'A scope has the wrong format for Entra: check `scopes`. Example: api://<id>/<scope>.',
    'misconfigured',
  ),
  entra(
    '500113',
    `${ENTRA_APP}, Authentication: add the platform Web with the redirect URI of the bridge.`,
    'misconfigured',
  ),
  entra(
    '50076',
    'The person must sign in again with a second factor, which a Conditional Access policy requires.',
    'refused',
  ),
  entra(
    '53003',
    'A Conditional Access policy blocks this sign-in: see the sign-in logs in the Microsoft Entra admin center.',
    'refused',
  ),
  entra('50057', 'The account is disabled in Microsoft Entra.', 'refused'),
  entra('(?:70008|700082|50173)', 'The login has ended there: the person must sign in again.', 'refused'),
]

const OKTA_APP = 'In the Okta Admin Console, Applications, your application'
const AUTH0_APP = 'In the Auth0 Dashboard, Applications, your application'
const KEYCLOAK_APP = 'In the Keycloak admin console, Clients, your client'
const GOOGLE_APP = 'In the Google Cloud console, Google Auth Platform'
const GITHUB_APP = 'In GitHub, Settings, Developer settings, your application'

const GOOGLE: readonly Row[] = [
  row(
    'google',
    { code: /^redirect_uri_mismatch$/ },
    `${GOOGLE_APP}, Clients: add the redirect URI of the bridge exactly to the authorized ones.`,
    'misconfigured',
  ),
  row(
    'google',
    { code: /^admin_policy_enforced$/ },
    'A Google Workspace administrator must trust the application: Google Admin console, Security, API controls, App access control.',
    'misconfigured',
  ),
  row(
    'google',
    { code: /^org_internal$/ },
    `The application is for its own organization only. ${GOOGLE_APP}, Audience: make it External, or use an account of the organization.`,
    'refused',
  ),
  row(
    'google',
    { code: /^(?:invalid_client|deleted_client|unauthorized_client)$/ },
    `${GOOGLE_APP}, Clients: check clientId and clientSecret of the client of type Web application.`,
  ),
  row(
    'google',
    { code: /^disabled_client$/ },
    `${GOOGLE_APP}, Clients: the client is disabled; enable it or create another.`,
  ),
]

const GITHUB: readonly Row[] = [
  row(
    'github',
    { code: /^incorrect_client_credentials$/ },
    `${GITHUB_APP}: check clientId and clientSecret; generate a new client secret if it is lost.`,
  ),
  row(
    'github',
    { code: /^redirect_uri_mismatch$/ },
    `${GITHUB_APP}: the authorization callback URL must be the redirect URI of the bridge.`,
    'misconfigured',
  ),
  row(
    'github',
    { code: /^application_suspended$/ },
    'GitHub has suspended the application: contact GitHub Support.',
    'misconfigured',
  ),
  row('github', { code: /^bad_verification_code$/ }, 'The code was used or is older than 10 minutes: sign in again.'),
  row(
    'github',
    { code: /^bad_refresh_token$/ },
    'The refresh token is no longer valid: the person must sign in again.',
  ),
  row(
    'github',
    { code: /^unverified_user_email$/ },
    'The person must verify the primary e-mail address at GitHub.',
    'refused',
  ),
]

const OTHERS: readonly Row[] = [
  row(
    'okta',
    { text: /policy evaluation failed/i },
    'No access policy of the authorization server allows this. In the Okta Admin Console, Security, API, your server, Access Policies: add a rule for the application, its people and scopes.',
    'refused',
  ),
  row(
    'okta',
    { text: /user is not assigned to the client application/i },
    `${OKTA_APP}, Assignments: assign the person, or a group of theirs.`,
    'refused',
  ),
  row(
    'okta',
    { text: /redirect_uri/ },
    `${OKTA_APP}, General, Sign-in redirect URIs: add the redirect URI of the bridge exactly.`,
    'misconfigured',
  ),
  row(
    'okta',
    { code: /^invalid_scope$/ },
    'In the Okta Admin Console, Security, API, your server, Scopes: add the scope, or leave it out of `scopes`.',
  ),
  row(
    'okta',
    { code: /^unsupported_grant_type$|^unauthorized_client$/ },
    `${OKTA_APP}, General, Grant type: allow Authorization Code, Refresh Token and, for exchange, Token Exchange.`,
  ),
  row(
    'okta',
    { code: /^invalid_client$/ },
    `${OKTA_APP}, General, Client Credentials: check clientId and clientSecret.`,
  ),
  row(
    'auth0',
    { text: /connection/i },
    `${AUTH0_APP}, Connections: switch on the connection that people sign in with.`,
    'misconfigured',
  ),
  row(
    'auth0',
    { text: /callback url mismatch/i },
    `${AUTH0_APP}, Settings, Allowed Callback URLs: add the redirect URI of the bridge exactly.`,
    'misconfigured',
  ),
  row('auth0', { text: /user is blocked/i }, 'The user is blocked in the Auth0 Dashboard, User Management.', 'refused'),
  row(
    'auth0',
    { text: /grant type .*not allowed/i },
    `${AUTH0_APP}, Settings, Advanced, Grant Types: allow Authorization Code and Refresh Token.`,
    'misconfigured',
  ),
  row(
    'auth0',
    { text: /service not found|audience/i },
    'In the Auth0 Dashboard, Applications, APIs: there is no API with this identifier; check `audience` in `parameters`.',
    'misconfigured',
  ),
  row(
    'auth0',
    { code: /^(?:access_denied|unauthorized)$/, text: /^unauthorized$/i },
    `Auth0 refused the request. ${AUTH0_APP}, Settings, Credentials: check clientSecret. Otherwise see Monitoring, Logs.`,
    'misconfigured',
  ),
  row('auth0', { code: /^invalid_client$/ }, `${AUTH0_APP}, Settings: check Client ID and Client Secret.`),
  row(
    'keycloak',
    { text: /invalid parameter: redirect_uri|incorrect redirect_uri/i },
    `${KEYCLOAK_APP}, Settings, Valid redirect URIs: add the redirect URI of the bridge.`,
    'misconfigured',
  ),
  row(
    'keycloak',
    { code: /^(?:invalid_client|unauthorized_client)$/ },
    `${KEYCLOAK_APP}, Credentials: check clientId and clientSecret; in Settings, Client authentication and Standard flow must be on.`,
  ),
  row(
    'keycloak',
    { code: /^invalid_scope$/ },
    `${KEYCLOAK_APP}, Client scopes: add the scope, or leave it out of \`scopes\`.`,
  ),
  row(
    'keycloak',
    { text: /requested audience not available|standard token exchange/i },
    `${KEYCLOAK_APP}, Settings: enable Standard token exchange, and add the audience to the client's scopes.`,
    'misconfigured',
  ),
  row(
    'keycloak',
    { text: /realm does not exist/i },
    'There is no such realm: check the end of issuer, /realms/<name>.',
    'misconfigured',
  ),
]

/** What the provider answered: `error` and `error_description`, as they came. */
export interface ProviderRefusal {
  readonly type: ProviderType
  readonly code?: string | undefined
  readonly description?: string | undefined
}

const ANY: readonly Row[] = [
  {
    code: /^(?!invalid_grant$)/,
    text: /redirect[_ ]uri/i,
    fault: 'misconfigured',
    fix: 'Register the redirect URI of the bridge with the application at the provider, exactly.',
  },
  {
    code: /^redirect_uri_mismatch$/,
    fault: 'misconfigured',
    fix: 'Register the redirect URI of the bridge with the application at the provider, exactly.',
  },
  {
    code: /^invalid_client$/,
    fix: 'Check clientId and clientSecret; if both are right, set authMethod to the other way of showing the secret.',
  },
  {
    code: /^unauthorized_client$/,
    fix: 'Allow the application the grants authorization_code and refresh_token at the provider.',
  },
  {
    code: /^unsupported_grant_type$/,
    fix: 'The provider does not know this grant: set `exchange` to another kind, or to none.',
  },
  { code: /^invalid_scope$/, fix: 'The provider does not give one of these scopes: correct `scopes`.' },
  {
    code: /^invalid_target$/,
    fix: 'The provider does not know the resource or audience that was named: check `parameters` and `scopes`.',
  },
  {
    code: /^invalid_grant$/,
    fix: 'The code or token was used, has ended or was withdrawn: the person must sign in again.',
  },
  {
    code: /^access_denied$/,
    fix: 'The person said no, or may not use the application: see who is assigned to it at the provider.',
  },
  { code: /^(?:consent|interaction|login)_required$/, fix: 'The person must sign in again at the provider.' },
]

const TABLE: readonly Row[] = [...ENTRA, ...GOOGLE, ...GITHUB, ...OTHERS, ...ANY]

/** What to do about a refusal; undefined where nobody knows. The first row that fits, of the vendor's before all others'. */
export function explain({ type, code = '', description = '' }: ProviderRefusal): Explanation | undefined {
  return TABLE.find(
    row =>
      (row.types?.includes(type) ?? true) && (row.code?.test(code) ?? true) && (row.text?.test(description) ?? true),
  )
}
