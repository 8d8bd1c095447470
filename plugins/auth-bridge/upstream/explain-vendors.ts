// What to change where Google, GitHub, Okta, Auth0 or Keycloak says no, by what they write.
import { type Row, row } from './explain-row.ts'

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
  row('google', { code: /^disabled_client$/ }, `${GOOGLE_APP}, Clients: the client is disabled; make another.`),
]

const GITHUB: readonly Row[] = [
  row(
    'github',
    { code: /^incorrect_client_credentials$/ },
    `${GITHUB_APP}: check clientId and clientSecret; make another secret if it is lost.`,
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
    'GitHub has suspended the application: write to GitHub Support.',
    'misconfigured',
  ),
  row('github', { code: /^bad_verification_code$/ }, 'The code was used or is older than 10 minutes: sign in again.'),
  row('github', { code: /^bad_refresh_token$/ }, 'The refresh token has ended: the person must sign in again.'),
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
    `Auth0 let nobody through: ${AUTH0_APP}, Settings, Credentials: check clientSecret; else see Monitoring, Logs.`,
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
    `${KEYCLOAK_APP}, Settings: switch on Standard token exchange, and have the audience among the client's scopes.`,
    'misconfigured',
  ),
  row(
    'keycloak',
    { text: /realm does not exist/i },
    'There is no such realm: check the end of issuer, /realms/<name>.',
    'misconfigured',
  ),
]

export const VENDORS: readonly Row[] = [...GOOGLE, ...GITHUB, ...OTHERS]
