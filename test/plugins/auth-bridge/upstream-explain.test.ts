// Tests the advice in the log for error responses of identity providers.
import { expect } from 'chai'
import { explain, type ProviderRefusal } from '../../../plugins/auth-bridge/upstream/upstream.ts'

type Case = readonly [type: ProviderRefusal['type'], code: string, description: string, fault?: string]

const CASES: readonly Case[] = [
  [
    'entra',
    'invalid_request',
    'AADSTS50011: The redirect URI specified in the request does not match.',
    'misconfigured',
  ],
  [
    'entra',
    'access_denied',
    'AADSTS50105: Your administrator has configured the application to block users.',
    'refused',
  ],
  ['entra', 'invalid_grant', 'AADSTS65001: The user or administrator has not consented.', 'misconfigured'],
  ['entra', 'invalid_client', 'AADSTS650053: The application asked for scope that doesn’t exist.', 'misconfigured'],
  ['entra', 'unauthorized_client', 'AADSTS700016: Application was not found in the directory.', 'misconfigured'],
  ['entra', 'invalid_client', 'AADSTS7000215: Invalid client secret provided.', 'misconfigured'],
  ['entra', 'invalid_client', 'AADSTS7000222: The provided client secret keys are expired.', 'misconfigured'],
  ['entra', 'invalid_tenant', "AADSTS90002: Tenant '8d2d' not found.", 'misconfigured'],
  ['entra', 'invalid_target', "AADSTS9010010: The resource parameter doesn't match.", 'misconfigured'],
  ['entra', 'invalid_scope', 'AADSTS70011: The provided value for scope is not valid.', 'misconfigured'],
  ['entra', 'invalid_grant', 'AADSTS50076: You must use multi-factor authentication.', 'refused'],
  ['entra', 'invalid_grant', 'AADSTS50173: The provided grant has expired.', 'refused'],
  ['google', 'redirect_uri_mismatch', 'Bad Request', 'misconfigured'],
  ['google', 'admin_policy_enforced', '', 'misconfigured'],
  ['google', 'org_internal', '', 'refused'],
  ['google', 'invalid_client', 'The OAuth client was not found.'],
  ['github', 'incorrect_client_credentials', 'The client_id and/or client_secret passed are incorrect.'],
  ['github', 'bad_verification_code', 'The code passed is incorrect or expired.'],
  ['github', 'redirect_uri_mismatch', 'The redirect_uri MUST match the registered callback URL.', 'misconfigured'],
  ['github', 'application_suspended', 'Your application has been suspended.', 'misconfigured'],
  [
    'okta',
    'access_denied',
    'Policy evaluation failed for this request, please check the policy configurations.',
    'refused',
  ],
  ['okta', 'access_denied', 'User is not assigned to the client application.', 'refused'],
  ['okta', 'invalid_request', "The 'redirect_uri' parameter must be a Login redirect URI.", 'misconfigured'],
  ['okta', 'invalid_scope', 'One or more scopes are not configured for the authorization server resource.'],
  ['auth0', 'access_denied', 'Unauthorized', 'misconfigured'],
  ['auth0', 'unauthorized_client', 'The connection is not enabled for the client', 'misconfigured'],
  ['auth0', 'unauthorized', 'user is blocked', 'refused'],
  ['auth0', 'access_denied', 'Service not found: https://api.example', 'misconfigured'],
  ['auth0', 'access_denied', 'The user is unauthorized for this grant type'],
  ['keycloak', 'invalid_request', 'Invalid parameter: redirect_uri', 'misconfigured'],
  ['keycloak', 'unauthorized_client', 'Invalid client or Invalid client credentials'],
  ['keycloak', 'invalid_scope', 'Invalid scopes: openid reports'],
  ['oidc', 'invalid_client', 'client authentication failed'],
  ['oidc', 'invalid_redirect_uri', "redirect_uri did not match any of the client's", 'misconfigured'],
  ['oauth', 'invalid_scope', ''],
  ['oidc', 'invalid_grant', 'redirect_uri mismatch'],
]

describe('Upstream error explanations', () => {
  for (const [type, code, description, fault] of CASES) {
    it(`refer ${type} ${code} ${description} to the page of the provider`, () => {
      const told = explain({ type, code, description })
      expect(told?.fault).to.equal(fault)
      expect(told?.fix).to.include(`docs/bridge/${type === 'oauth' ? 'oidc' : type}.md`)
    })
  }

  it('explains neither unknown errors nor those of other vendors', () => {
    expect(explain({ type: 'oidc', code: 'something_else', description: 'in words' })).to.equal(undefined)
    expect(explain({ type: 'oidc' })).to.equal(undefined)
    expect(explain({ type: 'auth0', code: 'unauthorized', description: 'by a rule' })).to.equal(undefined)
    expect(explain({ type: 'okta', code: 'x', description: 'AADSTS50011' })).to.equal(undefined)
  })
})
