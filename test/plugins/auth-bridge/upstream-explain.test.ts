// Tests the advice in the log for error responses of identity providers.
import { expect } from 'chai'
import { explain, type ProviderRefusal } from '../../../plugins/auth-bridge/upstream/upstream.ts'

type Case = readonly [type: ProviderRefusal['type'], code: string, description: string, says: string, fault?: string]

const CASES: readonly Case[] = [
  [
    'entra',
    'invalid_request',
    'AADSTS50011: The redirect URI specified in the request does not match.',
    'redirect URI',
    'misconfigured',
  ],
  [
    'entra',
    'access_denied',
    'AADSTS50105: Your administrator has configured the application to block users.',
    'Users and groups',
    'refused',
  ],
  [
    'entra',
    'invalid_grant',
    'AADSTS65001: The user or administrator has not consented.',
    'API permissions',
    'misconfigured',
  ],
  [
    'entra',
    'invalid_client',
    'AADSTS650053: The application asked for scope that doesn’t exist.',
    'scope',
    'misconfigured',
  ],
  [
    'entra',
    'unauthorized_client',
    'AADSTS700016: Application was not found in the directory.',
    'clientId',
    'misconfigured',
  ],
  [
    'entra',
    'invalid_client',
    'AADSTS7000215: Invalid client secret provided.',
    'Value, not its Secret ID',
    'misconfigured',
  ],
  [
    'entra',
    'invalid_client',
    'AADSTS7000222: The provided client secret keys are expired.',
    'expired',
    'misconfigured',
  ],
  ['entra', 'invalid_tenant', "AADSTS90002: Tenant '8d2d' not found.", 'Directory (tenant) ID', 'misconfigured'],
  ['entra', 'invalid_target', "AADSTS9010010: The resource parameter doesn't match.", '`resource`', 'misconfigured'],
  ['entra', 'invalid_scope', 'AADSTS70011: The provided value for scope is not valid.', '`scopes`', 'misconfigured'],
  ['entra', 'invalid_grant', 'AADSTS50076: You must use multi-factor authentication.', 'second factor', 'refused'],
  ['entra', 'invalid_grant', 'AADSTS50173: The provided grant has expired.', 'sign in again', 'refused'],
  ['google', 'redirect_uri_mismatch', 'Bad Request', 'Google Cloud console', 'misconfigured'],
  ['google', 'admin_policy_enforced', '', 'Admin console', 'misconfigured'],
  ['google', 'org_internal', '', 'External', 'refused'],
  ['google', 'invalid_client', 'The OAuth client was not found.', 'Web application'],
  [
    'github',
    'incorrect_client_credentials',
    'The client_id and/or client_secret passed are incorrect.',
    'clientSecret',
  ],
  ['github', 'bad_verification_code', 'The code passed is incorrect or expired.', 'sign in again'],
  [
    'github',
    'redirect_uri_mismatch',
    'The redirect_uri MUST match the registered callback URL.',
    'callback URL',
    'misconfigured',
  ],
  ['github', 'application_suspended', 'Your application has been suspended.', 'GitHub Support', 'misconfigured'],
  [
    'okta',
    'access_denied',
    'Policy evaluation failed for this request, please check the policy configurations.',
    'Access Policies',
    'refused',
  ],
  ['okta', 'access_denied', 'User is not assigned to the client application.', 'Assignments', 'refused'],
  [
    'okta',
    'invalid_request',
    "The 'redirect_uri' parameter must be a Login redirect URI.",
    'Sign-in redirect URIs',
    'misconfigured',
  ],
  ['okta', 'invalid_scope', 'One or more scopes are not configured for the authorization server resource.', 'Scopes'],
  ['auth0', 'access_denied', 'Unauthorized', 'clientSecret', 'misconfigured'],
  ['auth0', 'unauthorized_client', 'The connection is not enabled for the client', 'Connections', 'misconfigured'],
  ['auth0', 'unauthorized', 'user is blocked', 'blocked', 'refused'],
  ['auth0', 'access_denied', 'Service not found: https://api.example', '`audience`', 'misconfigured'],
  ['auth0', 'access_denied', 'Unauthorized', 'clientSecret', 'misconfigured'],
  ['auth0', 'access_denied', 'The user is unauthorized for this grant type', 'declined'],
  ['keycloak', 'invalid_request', 'Invalid parameter: redirect_uri', 'Valid redirect URIs', 'misconfigured'],
  ['keycloak', 'unauthorized_client', 'Invalid client or Invalid client credentials', 'Credentials'],
  ['keycloak', 'invalid_scope', 'Invalid scopes: openid reports', 'Client scopes'],
  ['oidc', 'invalid_client', 'client authentication failed', 'authMethod'],
  ['oidc', 'invalid_redirect_uri', "redirect_uri did not match any of the client's", 'Register', 'misconfigured'],
  ['oauth', 'invalid_scope', '', '`scopes`'],
  ['oidc', 'invalid_grant', 'redirect_uri mismatch', 'sign in again'],
]

describe('Upstream error explanations', () => {
  for (const [type, code, description, says, fault] of CASES) {
    it(`explains ${type} ${code} ${/^AADSTS\d+/.exec(description)?.[0] ?? ''} with ${says}`, () => {
      const told = explain({ type, code, description })
      expect(told?.fix).to.include(says)
      expect(told?.fault).to.equal(fault)
      // A sentence or two.
      expect(told?.fix.length).to.be.within(20, 260)
      expect(told?.fix).to.match(/\.$/)
    })
  }

  it('explains neither unknown errors nor those of other vendors', () => {
    expect(explain({ type: 'oidc', code: 'something_else', description: 'in words' })).to.equal(undefined)
    expect(explain({ type: 'oidc' })).to.equal(undefined)
    expect(explain({ type: 'auth0', code: 'unauthorized', description: 'by a rule' })).to.equal(undefined)
    expect(explain({ type: 'google', code: 'incorrect_client_credentials' })).to.equal(undefined)
    expect(explain({ type: 'okta', code: 'x', description: 'AADSTS50011' })).to.equal(undefined)
  })
})
