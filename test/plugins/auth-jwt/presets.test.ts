// Tests each provider preset with tokens of the provider's format, signed with test keys.
import { expect } from 'chai'
import { auth0, cognito, entra, keycloak, okta } from '../../../plugins/auth-jwt/index.ts'
import type { AuthJwtOptions } from '../../../plugins/auth-jwt/options.ts'
import { callAs, challengeHeader, readUser, startProtected } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { inSeconds, makeKey, signToken, toJwk } from '../../support/test-issuer.ts'

after(stopHosts)

const key = makeKey('of-the-provider', 'RS256')
const keys = [toJwk(key)]
const times = { iat: inSeconds(0), nbf: inSeconds(0), exp: inSeconds(3_600) }

/** The preset with our key in the place of the provider's. */
function withOurKey({ authority, issuers, ...rest }: AuthJwtOptions): AuthJwtOptions {
  const fixed = issuers?.map(({ issuer = '' }) => ({ issuer, keys }))
  return { ...rest, ...(fixed ? { issuers: fixed } : { issuer: authority ?? '', keys }) }
}

async function serve(preset: AuthJwtOptions) {
  const { guarded } = await startProtected({ 'auth-jwt': withOurKey(preset) })
  const call = (claims: object, header: object = {}) =>
    callAs(guarded, signToken({ ...times, ...claims }, key, { typ: 'JWT', ...header }))
  const refusal = async (claims: object, header?: object) => challengeHeader(await call(claims, header))
  return { userOf: async (claims: object, header?: object) => readUser(await call(claims, header)), refusal }
}

describe('auth-jwt: entra()', () => {
  const tenant = '11111111-2222-3333-4444-555555555555'
  const clientId = 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee'
  const v2 = {
    aud: clientId,
    iss: `https://login.microsoftonline.com/${tenant}/v2.0`,
    azp: '99999999-8888-7777-6666-555555555555',
    azpacr: '0',
    name: 'Ann Example',
    oid: 'ann-in-the-directory',
    preferred_username: 'ann@acme.example',
    rh: '0.AAAA',
    roles: ['Warehouse.Admin'],
    scp: 'mcp.tools mcp.admin',
    sub: 'pairwise-subject',
    tid: tenant,
    uti: 'abc',
    ver: '2.0',
  }

  it('accepts version 2 tokens, whose audience is the client id', async () => {
    const { userOf } = await serve(entra({ tenant, clientId }))
    const user = await userOf(v2, { x5t: 'thumbprint' })
    expect(user).to.deep.include({
      subject: 'ann-in-the-directory',
      clientId: v2.azp,
      scopes: ['mcp.tools', 'mcp.admin'],
      roles: ['Warehouse.Admin'],
    })
  })

  it('accepts version 1 tokens, with an api:// audience and another issuer', async () => {
    const { userOf, refusal } = await serve(entra({ tenant, clientId }))
    const { azp: _, ...rest } = v2
    const v1 = {
      ...rest,
      aud: `api://${clientId}`,
      iss: `https://sts.windows.net/${tenant}/`,
      appid: 'the-app',
      ver: '1.0',
    }
    expect(await userOf(v1)).to.deep.include({ subject: 'ann-in-the-directory', clientId: 'the-app' })
    expect(await refusal({ ...v1, iss: 'https://sts.windows.net/00000000-0000-0000-0000-000000000000/' })).to.contain(
      'issuer',
    )
    expect(await refusal({ ...v1, aud: 'https://graph.microsoft.com' })).to.contain('another audience')
  })

  it('requires a tenant id, and rejects domains, "common" and "organizations"', () => {
    for (const name of ['acme.onmicrosoft.com', 'common', 'organizations']) {
      expect(() => entra({ tenant: name, clientId })).to.throw('tenant')
    }
  })
})

describe('auth-jwt: okta()', () => {
  const token = {
    ver: 1,
    jti: 'AT.abc',
    iss: 'https://acme.okta.example/oauth2/default',
    aud: 'api://default',
    cid: '0oaclient',
    uid: '00uuser',
    scp: ['openid', 'mcp.tools'],
    auth_time: inSeconds(-10),
    sub: 'ann@acme.example',
    groups: ['Everyone', 'Admins'],
  }

  it('maps scopes from a list, the user id, cid as client and groups as roles', async () => {
    const { userOf } = await serve(okta({ domain: 'acme.okta.example' }))
    expect(await userOf(token, { typ: undefined })).to.deep.include({
      subject: '00uuser',
      clientId: '0oaclient',
      scopes: ['openid', 'mcp.tools'],
      roles: ['Everyone', 'Admins'],
    })
  })

  it('accepts tokens of its custom authorization server, not of the organisation server', async () => {
    const { refusal } = await serve(okta({ domain: 'acme.okta.example', authorizationServer: 'default' }))
    expect(await refusal({ ...token, iss: 'https://acme.okta.example' })).to.contain('another issuer')
  })

  it('requires a host name, not a URL', () => {
    expect(() => okta({ domain: 'https://acme.okta.example' })).to.throw('without https://')
  })
})

describe('auth-jwt: keycloak()', () => {
  const token = {
    jti: 'onrtac:abc',
    iss: 'https://sso.acme.example/realms/acme',
    aud: ['mcp', 'account'],
    sub: '6b1e7b2c',
    typ: 'Bearer',
    azp: 'inspector',
    sid: 'session',
    acr: '1',
    realm_access: { roles: ['offline_access', 'admin'] },
    resource_access: { 'mcp.server': { roles: ['writer'] }, account: { roles: ['view-profile'] } },
    scope: 'mcp.tools profile',
  }
  const options = { url: 'https://sso.acme.example/', realm: 'acme', clientId: 'mcp.server', audience: 'mcp' }

  it('maps realm roles and roles of its own client only, also with dots in the client id', async () => {
    const { userOf } = await serve(keycloak(options))
    expect(await userOf(token)).to.deep.include({
      subject: '6b1e7b2c',
      clientId: 'inspector',
      scopes: ['mcp.tools', 'profile'],
      roles: ['offline_access', 'admin', 'writer'],
    })
  })

  it('rejects ID and refresh tokens by their typ claim', async () => {
    const { refusal } = await serve(keycloak(options))
    for (const typ of ['ID', 'Refresh', 'Offline', undefined])
      expect(await refusal({ ...token, typ })).to.contain('typ')
  })
})

describe('auth-jwt: auth0()', () => {
  const token = {
    'https://acme.example/roles': ['admin'],
    iss: 'https://acme.eu.auth0.example/',
    sub: 'auth0|507f1f77',
    aud: ['https://mcp.acme.example', 'https://acme.eu.auth0.example/userinfo'],
    scope: 'openid profile',
    azp: 'spa-client',
    permissions: ['mcp.tools'],
  }

  it('adds permissions to the scopes, and reads roles from a namespaced claim', async () => {
    const preset = auth0({
      domain: 'acme.eu.auth0.example',
      audience: 'https://mcp.acme.example',
      rolesClaim: 'https://acme.example/roles',
    })
    const { userOf, refusal } = await serve(preset)
    expect(await userOf(token)).to.deep.include({
      subject: 'auth0|507f1f77',
      clientId: 'spa-client',
      scopes: ['openid', 'profile', 'mcp.tools'],
      roles: ['admin'],
    })
    expect(await refusal({ ...token, iss: 'https://acme.eu.auth0.example' })).to.contain('another issuer')
  })
})

describe('auth-jwt: cognito()', () => {
  const token = {
    sub: 'f9f5a0a8',
    'cognito:groups': ['eu-west-1_google', 'admins'],
    iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_abc',
    version: 2,
    client_id: 'app-client',
    origin_jti: 'o',
    event_id: 'e',
    token_use: 'access',
    scope: 'openid mcp/tools',
    auth_time: inSeconds(-5),
    jti: 'j',
    username: 'ann',
  }
  const preset = cognito({ region: 'eu-west-1', userPoolId: 'eu-west-1_abc', clientId: 'app-client' })

  it('accepts access tokens with a client and no audience, and maps groups to roles', async () => {
    const { userOf, refusal } = await serve(preset)
    expect(await userOf(token, { typ: undefined })).to.deep.include({
      subject: 'f9f5a0a8',
      clientId: 'app-client',
      scopes: ['openid', 'mcp/tools'],
      roles: ['eu-west-1_google', 'admins'],
    })
    expect(await refusal({ ...token, client_id: 'another-app' })).to.contain('another audience')
  })

  it('rejects ID tokens, whose audience is the client', async () => {
    const { refusal } = await serve(preset)
    expect(await refusal({ ...token, client_id: undefined, aud: 'app-client', token_use: 'id' })).to.contain(
      'token_use',
    )
  })
})
