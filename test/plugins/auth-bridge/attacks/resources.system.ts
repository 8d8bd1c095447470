// Tests that tokens and codes are bound to one resource (RFC 8707, MCP token audience) and that forged tokens are
// rejected.
import { expect } from 'chai'
import { deriveSigningKeys } from '../../../../plugins/auth-bridge/server/signing-keys.ts'
import { type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { readClaims } from '../../../support/form-browser.ts'
import { unsignedToken } from '../../../support/identity-provider.ts'
import { callAs } from '../../../support/protected-host.ts'
import { encode, inSeconds, makeKey, signText, signToken, toJwk } from '../../../support/test-issuer.ts'
import { errorIn, isRefused, post, send } from './attacker.ts'
import { Tally } from './tally.ts'

describe('auth-bridge attacks: resource and audience', () => {
  let bridge: StartedBridge
  let a: string
  let b: string

  before(async () => {
    const route = { toolsets: 'all', authorize: true } as const
    bridge = await startBridge({
      config: { routes: { '/a': route, '/b': route } },
    })
    a = `${bridge.url}/a`
    b = `${bridge.url}/b`
  })
  after(stopBridges)

  const foreign = () => [
    ...[b, `${a}/`, `${a}x`, `${a}/..`, `${a}?x`, `${a}#x`, a.replace('/a', '/A'), a.replace('127.0.0.1', 'localhost')],
    ...[bridge.url, `${bridge.url}/`, `${bridge.url}/open`, `${bridge.url}/auth`, bridge.issuer, bridge.idp.issuer],
    ...['https://evil.example/a', 'https://graph.microsoft.com', 'urn:x', 'x', '*', `${a} ${b}`, `${a},${b}`],
  ]

  it('rejects an access token at another route', async () => {
    const tally = new Tally('access token at another route')
    const client = await bridge.client()
    const tokens = await client.logIn({ resource: a })
    expect((await callAs(a, tokens.access_token)).status).to.equal(200)
    const { id_token } = (await client.logIn({ resource: a, scope: 'openid read' })) as unknown as { id_token?: string }
    for (const [what, token] of Object.entries({
      access: tokens.access_token,
      refresh: tokens.refresh_token,
      ID: id_token,
    })) {
      const { status } = await callAs(b, token)
      tally.add(`${what} token at b`, status === 401, status)
      if (what !== 'access') tally.add(`${what} token at a`, (await callAs(a, token)).status === 401)
    }
    tally.end(5)
  })

  it('rejects a refresh or code exchange for a resource outside the grant', async () => {
    const tally = new Tally('refresh and code for another resource')
    const client = await bridge.client()
    let { refresh_token: token = '' } = await client.logIn({ resource: a })
    for (const resource of foreign()) {
      const answer = await client.refresh(token, { resource })
      token = answer.refresh_token ?? token
      tally.add(
        `refresh for ${resource}`,
        answer.error !== undefined,
        answer.access_token && readClaims(answer.access_token),
      )
      const back = await client.decide(await client.ask({ resource: a }))
      const got = await client.exchange(back, { resource })
      tally.add(`code for ${resource}`, got.error !== undefined, got.access_token && readClaims(got.access_token))
    }
    const twice = await client.decide(await client.ask({ resource: a }))
    const form = new URLSearchParams({
      client_id: client.clientId,
      ...client.codeForm(twice.searchParams.get('code') ?? ''),
      resource: a,
    })
    form.append('resource', b)
    const got = await send(`${bridge.issuer}/token`, { method: 'POST', body: form })
    tally.add('code for a list with a foreign one', isRefused(got), got.text)
    const own = await client.refresh(token, { resource: a })
    expect(own.error, 'the one that was allowed').to.equal(undefined)
    tally.end(35)
  })

  it('rejects unknown resources', async () => {
    const tally = new Tally('authorization for a resource that is not here')
    const client = await bridge.client()
    // A trailing slash is ignored, so `/a/` is known.
    for (const resource of foreign().filter(one => one !== b && one !== `${a}/`)) {
      for (const list of [[resource], [a, resource], [resource, a]]) {
        const url = client.authorizeUrl({ scope: 'read' })
        for (const one of list) url.searchParams.append('resource', one)
        const got = await send(url)
        tally.add(list.join(' '), got.location?.searchParams.get('error') === 'invalid_target', got.location?.href)
      }
    }
    tally.end(54)
  })

  it('rejects forged access tokens that name an existing login', async () => {
    const tally = new Tally('access token that is made up')
    const client = await bridge.client()
    const { access_token: token } = await client.logIn({ resource: a })
    const claims = readClaims(token)
    expect(claims['sid']).to.be.a('string')
    const [head = '', body = '', signature = ''] = token.split('.')
    const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }
    const own = makeKey(header.kid)
    const [other] = deriveSigningKeys([Buffer.alloc(32, 7)])
    const admin = { ...claims, scope: 'read admin', roles: ['admin'] }
    const jwks = (await (await fetch(`${bridge.issuer}/jwks`)).json()) as { keys: Array<Record<string, unknown>> }
    const hmac = (secret: string) => {
      const text = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: header.kid })}.${encode(admin)}`
      return `${text}.${signText(text, 'HS256', secret)}`
    }
    const tokens: Record<string, string> = {
      'a key of the same name': signToken(admin, own),
      'a key in its header': signToken(admin, own, { jwk: toJwk(own) }),
      'a key at an address': signToken(admin, own, { jku: 'https://evil.example/jwks' }),
      'no key named': signToken(admin, own, { kid: undefined }),
      'another key’s name': signToken(admin, own, { kid: other?.publicJwk['kid'] }),
      'no signature': unsignedToken(admin),
      'the public key as a secret': hmac(JSON.stringify(jwks.keys[0])),
      'the public point as a secret': hmac(String(jwks.keys[0]?.['x'])),
      'the sid of another': `${head}.${encode({ ...claims, sid: 'x' })}.${signature}`,
      'more scopes': `${head}.${encode(admin)}.${signature}`,
      'another audience': `${head}.${encode({ ...claims, aud: b })}.${signature}`,
      'a later end': `${head}.${encode({ ...claims, exp: inSeconds(86_400) })}.${signature}`,
      'alg none': `${encode({ ...header, alg: 'none' })}.${body}.${signature}`,
      'typ JWT': `${encode({ ...header, typ: 'JWT' })}.${body}.${signature}`,
      'no signature at all': `${head}.${body}.`,
      'zeros for a signature': `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
      'of the provider': bridge.idp.sign({ ...admin }),
      'of the provider, as its own': bridge.idp.sign({ ...admin, iss: bridge.idp.issuer, aud: a }),
    }
    for (const [what, made] of Object.entries(tokens))
      for (const url of [a, b]) {
        const { status } = await callAs(url, made)
        tally.add(`${what} at ${url}`, status === 401, status)
      }
    tally.end(36)
  })

  it('rejects unsupported grant types', async () => {
    const tally = new Tally('grant types and endpoints that are none here')
    const client = await bridge.client()
    const { access_token: token } = await client.logIn({ resource: a })
    const types = [
      ...['client_credentials', 'password', 'implicit', 'urn:ietf:params:oauth:grant-type:device_code', '', 'x'],
      ...['urn:ietf:params:oauth:grant-type:token-exchange', 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
      ...['urn:openid:params:grant-type:ciba', 'urn:ietf:params:oauth:grant-type:pre-authorized_code'],
    ]
    for (const grant_type of types) {
      const form = {
        client_id: client.clientId,
        grant_type,
        resource: b,
        username: 'ann',
        password: 'x',
        subject_token: token,
      }
      const got = await post(`${bridge.issuer}/token`, { ...form, assertion: token, scope: 'admin' })
      tally.add(grant_type, isRefused(got) && errorIn(got) !== null && got.status < 500, got.text)
    }
    for (const path of [
      '/me',
      '/userinfo',
      '/introspect',
      '/token/introspection',
      '/session/end',
      '/request',
      '/par',
      '/device',
      '/reg/x',
      '/register/x',
      '/ciba',
    ]) {
      const got = await send(`${bridge.issuer}${path}`, { headers: { Authorization: `Bearer ${token}` } })
      tally.add(path, got.status >= 400 && got.status < 500, got.status)
    }
    tally.end(21)
  })
})
