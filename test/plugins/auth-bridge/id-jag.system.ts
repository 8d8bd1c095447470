// Tests the identity assertion grant (ID-JAG) at the token endpoint, and every check that rejects an assertion.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createAuthFetch } from '../../../client/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { MODERN_REVISION } from '../../../core/transport.ts'
import type { GrantStore } from '../../../plugins/families/grant-store/index.ts'
import { createMemoryGrantStore } from '../../../plugins/families/grant-store/index.ts'
import { type StartedBridge, startBridge } from '../../support/bridge.ts'
import { REDIRECT, readClaims, type TokenAnswer } from '../../support/form-browser.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { callAs, readUser } from '../../support/protected-host.ts'
import { createMeta, modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import {
  encode,
  inSeconds,
  makeKey,
  signText,
  signToken,
  startIssuer,
  stopIssuers,
  type TestIssuer,
  toJwk,
} from '../../support/test-issuer.ts'

const TYPE = 'oauth-id-jag+jwt'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const SECRET = 'a secret of the desk, which is long enough'
const DESK = { clientId: 'desk', clientSecret: SECRET, redirects: [REDIRECT] }

type Fields = Readonly<Record<string, unknown>>
type Answer = TokenAnswer & { readonly status: number; readonly retryAfter: string | null }

let serial = 0

const grantStoreWith = (store: GrantStore) =>
  definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup: host => host.provide('grantStore', store),
  })()

/** What is wrong with an assertion: claims over the good ones, or how it is signed. */
interface Bent {
  readonly claims?: Fields
  readonly header?: Fields
}

describe('auth-bridge: identity assertions (ID-JAG)', () => {
  let issuer: TestIssuer
  let bridge: StartedBridge
  const clientKey = makeKey('of the client')
  const text = (answer: Answer) => `${answer.status} ${answer.error}: ${answer.error_description}`

  const claims = (changes: Fields = {}): Record<string, unknown> => ({
    iss: issuer.url,
    sub: 'ann',
    aud: bridge.issuer,
    client_id: 'desk',
    jti: `assertion ${serial++}`,
    resource: bridge.resource,
    scope: 'read admin',
    iat: inSeconds(0),
    exp: inSeconds(300),
    email: 'ann@acme.example',
    email_verified: true,
    groups: ['engineering'],
    ...changes,
  })
  const assertion = ({ claims: changes, header }: Bent = {}, key = issuer.keys[0]) => {
    if (!key) throw new Error('no key')
    return signToken(claims(changes), key, { typ: TYPE, ...header })
  }
  const basic = (id: string, secret: string) => ({
    Authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
  })
  async function show(form: Record<string, string>, headers: Record<string, string> = basic('desk', SECRET)) {
    const body = new URLSearchParams({ grant_type: GRANT, ...form })
    const response = await fetch(`${bridge.issuer}/token`, { method: 'POST', body, headers })
    const answer = (await response.json()) as TokenAnswer
    return { ...answer, status: response.status, retryAfter: response.headers.get('retry-after') } as Answer
  }

  before(async () => {
    issuer = await startIssuer()
    bridge = await startBridge({
      options: {
        allow: { domains: ['acme.example'] },
        roles: { builder: { group: 'engineering' } },
        trustedIssuers: [{ issuer: issuer.url }],
        clients: {
          fixed: [
            DESK,
            { ...DESK, clientId: 'post', authMethod: 'client_secret_post' },
            { clientId: 'keyed', keys: [toJwk(clientKey)], redirects: [REDIRECT] },
            { clientId: 'public', redirects: [REDIRECT] },
          ],
        },
      },
    })
  })
  after(async () => {
    await stopHosts()
    await Promise.all([stopIssuers(), stopIdentityProviders()])
  })

  it('advertises the grant in the metadata only if a trusted issuer is configured', async () => {
    const read = async (base: string) =>
      (await (await fetch(`${base}/.well-known/oauth-authorization-server`)).json()) as Record<string, string[]>
    const said = await read(bridge.issuer)
    expect(said['grant_types_supported']).to.include(GRANT)
    expect(said['authorization_grant_profiles_supported']).to.deep.equal(['urn:ietf:params:oauth:grant-profile:id-jag'])
    const other = await startBridge()
    const without = await read(other.issuer)
    expect(without['grant_types_supported']).to.deep.equal(['authorization_code', 'refresh_token'])
    expect(without).to.not.have.property('authorization_grant_profiles_supported')
    const body = new URLSearchParams({ grant_type: GRANT, assertion: assertion(), client_id: 'x' })
    expect((await fetch(`${other.issuer}/token`, { method: 'POST', body })).status).to.be.within(400, 401)
  })

  it('issues an access token for the user of the assertion without a login', async () => {
    const answer = await show({ assertion: assertion() })
    expect(text(answer)).to.equal('200 undefined: undefined')
    expect(answer).to.include({ scope: 'read admin', token_type: 'Bearer' }).and.not.have.property('refresh_token')
    const subject = `${issuer.url}#ann`
    const given = readClaims(answer.access_token)
    expect(given).to.include({ iss: bridge.issuer, aud: bridge.resource, sub: subject, client_id: 'desk' })
    expect(given)
      .to.deep.include({ roles: ['builder'], scope: 'read admin' })
      .and.not.have.property('sid')
    const called = await callAs(bridge.resource, answer.access_token)
    expect(readUser(called)).to.include({ issuer: bridge.issuer, subject, clientId: 'desk' })
    const tool = await modern(
      bridge.resource,
      'tools/call',
      { name: 'upstream', arguments: {} },
      {
        headers: { Authorization: `Bearer ${answer.access_token}` },
      },
    )
    expect(JSON.stringify(tool.message)).to.include('did not sign in through this host')
  })

  it('accepts an ID-JAG that our client obtains by token exchange', async () => {
    const asked: URLSearchParams[] = []
    const desk: Server = createServer(async (request, response) => {
      let body = ''
      for await (const piece of request) body += String(piece)
      const form = new URLSearchParams(body)
      asked.push(form)
      const changes = { aud: form.get('audience'), resource: form.get('resource'), scope: form.get('scope') ?? 'read' }
      const access_token = assertion({ claims: changes })
      const issued_token_type = 'urn:ietf:params:oauth:token-type:id-jag'
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ access_token, issued_token_type, token_type: 'N_A', expires_in: 300 }))
    })
    await new Promise<void>(resolve => desk.listen(0, '127.0.0.1', resolve))
    const tokenEndpoint = `http://127.0.0.1:${(desk.address() as AddressInfo).port}/token`
    try {
      const authorized = createAuthFetch({
        serverUrl: bridge.resource,
        clientId: 'desk',
        clientSecret: SECRET,
        clientIssuer: bridge.issuer,
        scopes: ['read'],
        grant: {
          type: 'enterprise',
          idToken: async () => 'an ID token',
          idp: { tokenEndpoint, clientId: 'at-the-desk' },
        },
      })
      const answer = await authorized(bridge.resource, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          'MCP-Protocol-Version': MODERN_REVISION,
          'Mcp-Method': 'tools/call',
          'Mcp-Name': 'whoami',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'whoami', _meta: createMeta() },
        }),
      })
      expect(answer.status).to.equal(200)
      expect(await answer.text()).to.include(`${issuer.url}#ann`)
      expect(asked.map(form => form.get('audience'))).to.deep.equal([bridge.issuer])
    } finally {
      desk.close()
    }
  })

  it('accepts clients with client_secret_post and private_key_jwt', async () => {
    const byForm = { client_id: 'post', client_secret: SECRET }
    const posted = await show({ assertion: assertion({ claims: { client_id: 'post' } }), ...byForm }, {})
    expect(text(posted)).to.equal('200 undefined: undefined')
    const proof = {
      iss: 'keyed',
      sub: 'keyed',
      aud: bridge.issuer,
      jti: 'proof',
      iat: inSeconds(0),
      exp: inSeconds(60),
    }
    const client_assertion = signToken(proof, clientKey, { typ: 'JWT' })
    const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    const keyed = await show(
      {
        assertion: assertion({ claims: { client_id: 'keyed' } }),
        client_id: 'keyed',
        client_assertion,
        client_assertion_type,
      },
      {},
    )
    expect(text(keyed)).to.equal('200 undefined: undefined')
    const registered = await bridge.client({
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', GRANT],
    })
    const ofConfig = await show({ assertion: assertion({ claims: { client_id: 'public' } }), client_id: 'public' }, {})
    expect(text(ofConfig)).to.match(/^400 unauthorized_client/)
    const { clientId } = registered
    const ofItself = await show({ assertion: assertion({ claims: { client_id: clientId } }), client_id: clientId }, {})
    expect(text(ofItself)).to.match(/^400 invalid_request: .*grant type is not allowed/)
  })

  it('grants scopes in the assertion that the client requests and the user may have', async () => {
    const rows: ReadonlyArray<readonly [Fields, string | undefined, string | undefined]> = [
      [{ scope: 'read admin' }, 'read', 'read'],
      [{ scope: 'read' }, 'read admin', 'read'],
      [{ scope: 'read admin', groups: ['staff'] }, undefined, 'read'],
      [{ scope: 'read admin', groups: undefined }, 'admin', undefined],
      [{ scope: 'read unheard-of offline_access openid' }, undefined, 'read'],
      [{ scope: undefined }, 'read', undefined],
      [{ scope: ['read'] }, 'read', undefined],
    ]
    for (const [changes, asked, given] of rows) {
      const scope = asked === undefined ? {} : { scope: asked }
      const answer = await show({ assertion: assertion({ claims: changes }), ...scope })
      expect(text(answer)).to.equal('200 undefined: undefined')
      expect([answer.scope, readClaims(answer.access_token)['scope']]).to.deep.equal([given, given])
    }
  })

  it('takes the resource from the request if the assertion has none, and only a known one', async () => {
    const mine = bridge.resource
    const rows: ReadonlyArray<readonly [unknown, string | undefined, string]> = [
      [mine, mine, '200'],
      [undefined, mine, '200'],
      [undefined, undefined, '200'],
      [[mine], undefined, '200'],
      [undefined, 'https://elsewhere.example/mcp', '400 invalid_target'],
      [mine, 'https://elsewhere.example/mcp', '400 invalid_target'],
      ['https://elsewhere.example/mcp', undefined, '400 invalid_grant'],
      [[mine, 'https://elsewhere.example/mcp'], mine, '400 invalid_grant'],
      [[], mine, '400 invalid_target'],
      [{ mine }, mine, '400 invalid_grant'],
    ]
    for (const [claim, asked, expected] of rows) {
      const form = asked === undefined ? {} : { resource: asked }
      const answer = await show({ assertion: assertion({ claims: { resource: claim } }), ...form })
      expect(text(answer), JSON.stringify([claim, asked])).to.match(new RegExp(`^${expected}\\b`))
      if (answer.status === 200) expect(readClaims(answer.access_token)['aud']).to.equal(mine)
    }
  })

  it('rejects assertions with invalid claims, and the error shows none of their content', async () => {
    const marked = 'a-mark-that-no-answer-has'
    const wrong: ReadonlyArray<readonly [string, Fields, RegExp]> = [
      ['another issuer', { iss: `https://${marked}.example` }, /issuer/],
      ['the issuer with a slash', { iss: `${issuer.url}/` }, /issuer/],
      ['no issuer', { iss: undefined }, /issuer/],
      ['another audience', { aud: `https://${marked}.example` }, /audience/],
      ['the audience with a slash', { aud: `${bridge.issuer}/` }, /audience/],
      ['the token endpoint as the audience', { aud: `${bridge.issuer}/token` }, /audience/],
      ['a second audience', { aud: [bridge.issuer, `https://${marked}.example`] }, /audience/],
      ['no audience', { aud: undefined }, /audience/],
      ['another client', { client_id: marked }, /client/],
      ['no client', { client_id: undefined }, /client/],
      ['several clients', { client_id: ['desk'] }, /client/],
      ['no subject', { sub: undefined }, /sub/],
      ['an empty subject', { sub: '' }, /sub/],
      ['a subject that is a number', { sub: 7 }, /sub/],
      ['no id', { jti: undefined }, /jti/],
      ['an empty id', { jti: '' }, /jti/],
      ['no end', { exp: undefined }, /exp/],
      ['no beginning', { iat: undefined }, /iat/],
      ['a past end', { iat: inSeconds(-400), exp: inSeconds(-61) }, /expired/],
      ['a beginning to come', { iat: inSeconds(120), exp: inSeconds(180) }, /iat/],
      ['a time before which it is not valid', { nbf: inSeconds(120) }, /nbf/],
      ['a long life', { exp: inSeconds(660) }, /10 minutes/],
      ['times as texts', { exp: `${inSeconds(300)}` }, /exp/],
      ['a key that it is bound to', { cnf: { jkt: marked } }, /cnf/],
      ['a tenant', { tenant: marked }, /tenant/],
      ['an address of another domain', { email: `${marked}@elsewhere.example` }, /domain/],
      ['an address that nobody verified', { email_verified: undefined }, /verified/],
    ]
    for (const [what, changes, why] of wrong) {
      const answer = await show({ assertion: assertion({ claims: changes }) })
      expect(text(answer), what)
        .to.match(/^400 invalid_grant: /)
        .and.match(why)
      expect(JSON.stringify(answer), what).to.not.include(marked)
    }
  })

  it('rejects assertions with invalid signatures', async () => {
    const good = assertion()
    const [head = '', body = '', signature = ''] = good.split('.')
    const pem = issuer.keys[0]?.publicKey.export({ type: 'spki', format: 'pem' }).toString() ?? ''
    const byHash = (alg: string, key: string) => {
      const signed = `${encode({ alg, typ: TYPE, kid: 'first' })}.${encode(claims())}`
      return `${signed}.${signText(signed, alg, key)}`
    }
    const forged: ReadonlyArray<readonly [string, string]> = [
      ['of another key with the same name', assertion({}, makeKey('first'))],
      ['of another key with another name', assertion({}, makeKey('unknown'))],
      ['of the client itself', assertion({}, clientKey)],
      ['alg none', `${encode({ alg: 'none', typ: TYPE })}.${encode(claims())}.`],
      ['alg none with a signature', `${encode({ alg: 'none', typ: TYPE })}.${body}.${signature}`],
      ['HS256 with the public key', byHash('HS256', pem)],
      ['HS512 with the public key', byHash('HS512', pem)],
      ['HS256 with the secret of the client', byHash('HS256', SECRET)],
      ['other claims under the signature', `${head}.${encode(claims({ sub: 'bob' }))}.${signature}`],
      ['another header over the signature', `${encode({ alg: 'ES256', typ: TYPE })}.${body}.${signature}`],
      ['no signature', `${head}.${body}.`],
      ['typ JWT', assertion({ header: { typ: 'JWT' } })],
      ['typ at+jwt', assertion({ header: { typ: 'at+jwt' } })],
      ['no typ', assertion({ header: { typ: undefined } })],
      ['the type in capitals', assertion({ header: { typ: TYPE.toUpperCase() } })],
      ['critical headers', assertion({ header: { crit: ['exp'] } })],
      ['a kid that is no text', assertion({ header: { kid: 7 } })],
      ['a key of its own in the header', assertion({ header: { jwk: toJwk(clientKey), kid: undefined } }, clientKey)],
      ['RS256 by its name, ES256 by its signature', assertion({ header: { alg: 'RS256' } })],
      ['padding', `${good}=`],
      ['five parts', `${good}.a.b`],
      ['no JWT', 'an assertion'],
      ['nothing', ''],
      ['too much', assertion({ claims: { filling: 'x'.repeat(20_000) } })],
    ]
    for (const [what, one] of forged) {
      const answer = await show({ assertion: one })
      expect(text(answer), what).to.match(/^400 (?:invalid_grant|invalid_request): /)
      if (/^(?:alg none with|HS)/.test(what)) expect(text(answer), what).to.match(/\(alg\) is not one of/)
    }
    expect((await show({ assertion: good })).status, 'the good one, after all that').to.equal(200)
    expect(issuer.asked.filter(path => path === '/jwks').length, 'questions for keys').to.be.at.most(3)
  })

  it('accepts an assertion once of 50 concurrent uses', async () => {
    const same = assertion()
    const answers = await Promise.all(Array.from({ length: 50 }, () => show({ assertion: same })))
    const taken = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(answer => /^400 invalid_grant: .*already used/.test(text(answer)))
    expect([taken.length, refused.length]).to.deep.equal([1, 49])
    expect((await show({ assertion: same })).error).to.equal('invalid_grant')
  })

  it('keeps used assertions when a flood of logins fills the store', async () => {
    let begun = 0
    const room = { pending: 20_000, granted: 1_000_000 }
    const memory = createMemoryGrantStore(room)
    const store: GrantStore = {
      ...memory,
      async set(key, value, ttl) {
        if (key.startsWith('pending:')) begun++
        await memory.set(key, value, ttl)
      },
    }
    const small = await startBridge({
      options: { trustedIssuers: [{ issuer: issuer.url }], clients: { fixed: [DESK] } },
      plugins: { small: grantStoreWith(store) },
    })
    const one = assertion({ claims: { aud: small.issuer, resource: small.resource } })
    const ask = async () => {
      const body = new URLSearchParams({ grant_type: GRANT, assertion: one })
      const response = await fetch(`${small.issuer}/token`, { method: 'POST', body, headers: basic('desk', SECRET) })
      return (await response.json()) as TokenAnswer
    }
    expect((await ask()).error_description).to.equal(undefined)
    const client = await small.client()
    const begin = () => fetch(client.authorizeUrl({ resource: small.resource, scope: 'read' }), { redirect: 'manual' })
    const first = await begin()
    await Promise.all(Array.from({ length: 100 }, begin))
    const cookie = first.headers
      .getSetCookie()
      .map(line => line.split(';')[0])
      .join('; ')
    const gone = await fetch(new URL(first.headers.get('location') ?? '', small.issuer), { headers: { cookie } })
    expect([begun > 100, gone.status === 200], 'the flood took the place of the first login').to.deep.equal([
      true,
      false,
    ])
    expect((await ask()).error_description).to.match(/already used/)
  })

  it('answers with a temporary error while the issuer keys are unavailable', async () => {
    const away = await startIssuer()
    away.mood = 'broken'
    const other = await startBridge({ options: { trustedIssuers: [{ issuer: away.url }], clients: { fixed: [DESK] } } })
    const ask = async () => {
      const given = claims({ iss: away.url, aud: other.issuer, resource: other.resource })
      const one = signToken(given, away.keys[0] ?? makeKey('none'), { typ: TYPE })
      const body = new URLSearchParams({ grant_type: GRANT, assertion: one })
      const response = await fetch(`${other.issuer}/token`, { method: 'POST', body, headers: basic('desk', SECRET) })
      return { response, answer: (await response.json()) as TokenAnswer }
    }
    const { response, answer } = await ask()
    expect([response.status, answer.error]).to.deep.equal([503, 'temporarily_unavailable'])
    expect(Number(response.headers.get('retry-after'))).to.be.within(1, 60)
  })

  it('accepts only the trusted tenant of a multi-tenant issuer', async () => {
    const other = await startBridge({
      options: { trustedIssuers: [{ issuer: issuer.url, tenant: 'acme' }], clients: { fixed: [DESK] } },
    })
    const answers = await Promise.all(
      ['acme', 'other', undefined, ['acme']].map(async tenant => {
        const one = assertion({ claims: { tenant, aud: other.issuer, resource: other.resource } })
        const body = new URLSearchParams({ grant_type: GRANT, assertion: one })
        const response = await fetch(`${other.issuer}/token`, { method: 'POST', body, headers: basic('desk', SECRET) })
        return response.status
      }),
    )
    expect(answers).to.deep.equal([200, 400, 400, 400])
  })

  it('maps assertions of the sign-in provider to the same users', async () => {
    const { idp } = bridge
    const other = await startBridge({
      idp,
      // With a key of its own for assertions, elsewhere.
      options: { trustedIssuers: [{ issuer: idp.issuer, jwksUri: `${issuer.url}/jwks` }], clients: { fixed: [DESK] } },
    })
    const given = claims({ iss: idp.issuer, aud: other.issuer, resource: other.resource })
    const client = await other.client()
    const person = readClaims((await client.logIn({ scope: 'read' })).access_token)['sub']
    const body = new URLSearchParams({ grant_type: GRANT, assertion: assertion({ claims: given }) })
    const response = await fetch(`${other.issuer}/token`, { method: 'POST', body, headers: basic('desk', SECRET) })
    const answer = (await response.json()) as TokenAnswer
    expect(answer.error_description).to.equal(undefined)
    expect(readClaims(answer.access_token)['sub']).to.equal(person).and.equal('ann')
  })

  it('fails startup for invalid issuers or clients in the config', async () => {
    const wrong: ReadonlyArray<readonly [object, RegExp]> = [
      [{ trustedIssuers: [{ issuer: 'http://idp.acme.example' }] }, /trustedIssuers.*https/],
      [{ trustedIssuers: [{ issuer: 'https://a.example', jwksUri: 'http://a.example/keys' }] }, /jwksUri.*https/],
      [{ trustedIssuers: [{ issuer: 'https://a.example/?x=1' }] }, /trustedIssuers.*issuer/],
      [{ trustedIssuers: [{ issuer: 'https://a.example' }, { issuer: 'https://a.example' }] }, /trustedIssuers/],
      [{ clients: { fixed: [{ ...DESK, keys: [toJwk(clientKey)] }] } }, /remove one of them|has a secret and keys/],
      [{ clients: { fixed: [{ clientId: 'a', redirects: [REDIRECT], authMethod: 'private_key_jwt' }] } }, /needs keys/],
      [
        { clients: { fixed: [{ clientId: 'a', redirects: [REDIRECT], authMethod: 'client_secret_post' }] } },
        /needs clientSecret/,
      ],
      [
        {
          clients: {
            fixed: [{ clientId: 'a', redirects: [REDIRECT], keys: [clientKey.privateKey.export({ format: 'jwk' })] }],
          },
        },
        /private/,
      ],
    ]
    for (const [options, why] of wrong) {
      const told = await startBridge({ idp: bridge.idp, options }).then(
        () => 'started',
        error => String(error),
      )
      expect(told).to.match(why)
    }
  })
})
