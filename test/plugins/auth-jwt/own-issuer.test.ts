// Tests auth-jwt together with a plugin that makes the host its own authorization server.
import { expect } from 'chai'
import { createHost } from '../../../core/create-host.ts'
import { testHost } from '../../../core/testing.ts'
import { ownServer } from '../../fixtures/own-server.ts'
import { hello } from '../../fixtures/plugins.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { callAs, challengeHeader, readUser, startProtected } from '../../support/protected-host.ts'
import { createTestLog, stopHosts } from '../../support/start-host.ts'
import {
  encode,
  inSeconds,
  makeKey,
  signText,
  signToken,
  startIssuer,
  stopIssuers,
  toJwk,
} from '../../support/test-issuer.ts'

after(async () => {
  await stopHosts()
  await stopIssuers()
})

const OTHER = 'https://issuer.example'
const ALL = { toolsets: 'all' }
const GUARDED = { toolsets: 'all', authorize: true as const }

describe("auth-jwt without an issuer, with the host's own authorization server", () => {
  it('accepts host-issued tokens without fetching keys, although the issuer depends on the port', async () => {
    const own = ownServer()
    const { guarded, url, log } = await startProtected({ own: own.plugin, 'auth-jwt': {} })
    expect(own.issuer()).to.equal(`${url}/auth`)
    const answer = await callAs(guarded, own.token(guarded, { scope: 'read write', roles: ['admin'] }))
    expect(readUser(answer)).to.deep.include({ issuer: `${url}/auth`, subject: 'ann', clientId: 'a-client' })
    expect(readUser(answer)).to.deep.include({ scopes: ['read', 'write'], roles: ['admin'] })
    expect(own.asked).to.deep.equal(['/guarded'])
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })

  it('accepts tokens of the public URL if one is set', async () => {
    const own = ownServer()
    const http = { port: 0, publicUrl: 'https://mcp.acme.example/tools/' }
    const { guarded } = await startProtected({ own: own.plugin, 'auth-jwt': {} }, { http })
    const resource = 'https://mcp.acme.example/tools/guarded'
    expect(own.issuer()).to.equal('https://mcp.acme.example/tools/auth')
    expect((await callAs(guarded, own.token(resource))).status).to.equal(200)
    expect((await callAs(guarded, own.token(guarded))).status).to.equal(401)
  })

  it('rejects all other tokens', async () => {
    const own = ownServer()
    const { guarded, open, url } = await startProtected({ own: own.plugin, 'auth-jwt': {} })
    const [key] = own.keys
    if (!key) throw new Error('it has a key')
    const pem = key.publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const hs = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: key.kid })}.${encode(own.claims(guarded))}`
    const none = `${encode({ alg: 'none', typ: 'at+jwt' })}.${encode(own.claims(guarded))}.`
    const rows: ReadonlyArray<readonly [string, string, string]> = [
      ['a key of the same name that is another', own.token(guarded, {}, makeKey(key.kid)), 'signature'],
      ['a key that it does not have', own.token(guarded, {}, makeKey('foreign')), 'signature'],
      ['another issuer', own.token(guarded, { iss: OTHER }), 'issuer'],
      ['its issuer with a slash', own.token(guarded, { iss: `${url}/auth/` }), 'issuer'],
      ['the address of the host', own.token(guarded, { iss: url }), 'issuer'],
      ['no issuer', own.token(guarded, { iss: undefined }), 'issuer'],
      ['an empty issuer', own.token(guarded, { iss: '' }), 'issuer'],
      ['a list of issuers', own.token(guarded, { iss: [`${url}/auth`] }), 'issuer'],
      ['another route', own.token(open), 'audience'],
      ['another host', own.token(OTHER), 'audience'],
      ['no audience', own.token(guarded, { aud: undefined }), 'audience'],
      ['a time that is over', own.token(guarded, { exp: inSeconds(-300) }), 'expired'],
      ['an ID token', own.token(guarded, { nonce: 'n' }), 'ID token'],
      ['nobody', own.token(guarded, { sub: undefined, client_id: undefined }), 'subject'],
      ['ES384', own.token(guarded, {}, makeKey(key.kid, 'ES384')), 'ES384'],
      ['RS256', own.token(guarded, {}, makeKey(key.kid, 'RS256')), 'RS256'],
      ['its public key as a secret', `${hs}.${signText(hs, 'HS256', pem)}`, 'HS256'],
      ['no signature', none, 'not signed'],
    ]
    for (const [what, token, why] of rows) {
      const answer = await callAs(guarded, token)
      expect([answer.status, challengeHeader(answer)].join(' '), what)
        .to.match(/^401 .*invalid_token/)
        .and.contain(why)
    }
    expect((await callAs(guarded, own.token(guarded))).status).to.equal(200)
  })

  it('follows key changes: accepts new keys at once, and rejects verified tokens of removed keys', async () => {
    const own = ownServer()
    const { guarded } = await startProtected({ own: own.plugin, 'auth-jwt': {} })
    const [first] = own.keys
    const second = makeKey('own-2')
    if (!first) throw new Error('it has a key')
    const tokens = [first, second].map(key => own.token(guarded, {}, key))
    const statuses = async () => Promise.all(tokens.map(async token => (await callAs(guarded, token)).status))
    expect(await statuses()).to.deep.equal([200, 401])
    own.keys = [second, first]
    expect(await statuses()).to.deep.equal([200, 200])
    own.keys = [second]
    expect(await statuses()).to.deep.equal([401, 200])
    own.keys = [makeKey(second.kid)]
    expect(await statuses()).to.deep.equal([401, 401])
    own.keys = [first, second]
    expect(await statuses()).to.deep.equal([200, 200])
  })

  it('ignores an unreadable key and logs it once', async () => {
    const own = ownServer()
    own.more = [{ kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA', kid: 'broken', alg: 'ES256', use: 'sig' }]
    const { guarded, log } = await startProtected({ own: own.plugin, 'auth-jwt': {} })
    for (const sub of ['ann', 'bob']) expect((await callAs(guarded, own.token(guarded, { sub }))).status).to.equal(200)
    const told = log.filter(({ level }) => level === 'error')
    expect(told.map(({ kid, plugin }) => [kid, plugin])).to.deep.equal([['broken', 'auth-jwt']])
  })

  it('uses the configured audience and claims', async () => {
    const own = ownServer()
    const options = { audience: 'api', claims: { roles: 'groups' } }
    const { guarded } = await startProtected({ own: own.plugin, 'auth-jwt': options })
    expect(readUser(await callAs(guarded, own.token('api', { groups: ['a'] }))).roles).to.deep.equal(['a'])
    expect((await callAs(guarded, own.token(guarded))).status).to.equal(401)
  })
})

describe('auth-jwt with an authorization server on some routes only', () => {
  const routes = { '/guarded': GUARDED, '/open': { ...ALL, plugins: { own: false as const } } }

  it('fails startup for a route without a token issuer, unless auth-jwt is off there', async () => {
    const config = { toolsets: { all: [] }, routes }
    const plugins = () => ({ 'transport-streamable': {}, own: ownServer().plugin, 'auth-jwt': {} })
    await expectStopped(
      { ...config, plugins: plugins() },
      /plugins\['auth-jwt'\].*routes\['\/open'\].*authority.*auth-bridge/,
    )
    const own = ownServer()
    const off = {
      '/guarded': GUARDED,
      '/open': { ...ALL, plugins: { own: false as const, 'auth-jwt': false as const } },
    }
    const { guarded } = await startProtected({ own: own.plugin, 'auth-jwt': {} }, { routes: off })
    expect((await callAs(guarded, own.token(guarded))).status).to.equal(200)
  })

  it('accepts tokens only on routes of their own authorization server, cached or not', async () => {
    const [a, b] = [ownServer('/a'), ownServer('/b')]
    const { guarded, open } = await startProtected(
      { a: a.plugin, b: b.plugin, 'auth-jwt': { audience: 'api' } },
      {
        routes: {
          '/guarded': { ...GUARDED, plugins: { b: false } },
          '/open': { ...ALL, plugins: { a: false } },
        },
      },
    )
    const tokens = [a.token('api'), b.token('api')]
    const statuses = async (url: string) => {
      const found: number[] = []
      for (const token of tokens) found.push((await callAs(url, token)).status)
      return found
    }
    for (let round = 0; round < 2; round++) {
      expect(await statuses(guarded)).to.deep.equal([200, 401])
      expect(await statuses(open)).to.deep.equal([401, 200])
    }
  })
})

describe("auth-jwt with issuers and the host's own authorization server", () => {
  const key = makeKey('other')
  const machine = { issuer: OTHER, keys: [toJwk(key)], audience: 'api', claims: { scopes: 'scp', roles: 'groups' } }
  const claims = (changes: object = {}) => ({ iss: OTHER, sub: 'job', aud: 'api', exp: inSeconds(300), ...changes })

  it('accepts only the configured issuers', async () => {
    const own = ownServer()
    for (const more of [{}, { ownIssuer: false }]) {
      const { guarded } = await startProtected({ own: own.plugin, 'auth-jwt': { ...machine, ...more } })
      expect((await callAs(guarded, signToken(claims(), key))).status).to.equal(200)
      const answer = await callAs(guarded, own.token(guarded))
      expect(answer.status).to.equal(401)
      expect(challengeHeader(answer)).to.contain('another issuer')
    }
  })

  it('accepts host-issued tokens with ownIssuer, each issuer with its own keys, audience and claims', async () => {
    for (const options of [machine, { issuers: [machine] }]) {
      const own = ownServer()
      const { guarded } = await startProtected({ own: own.plugin, 'auth-jwt': { ...options, ownIssuer: true } })
      const theirs = await callAs(guarded, signToken(claims({ scp: 'run', groups: ['jobs'] }), key))
      expect(readUser(theirs)).to.deep.include({ subject: 'job', scopes: ['run'], roles: ['jobs'] })
      const ours = await callAs(guarded, own.token(guarded, { scope: 'read', roles: ['admin'], groups: ['jobs'] }))
      expect(readUser(ours)).to.deep.include({ subject: 'ann', scopes: ['read'], roles: ['admin'] })
      const attacks = [
        own.token('api'),
        own.token(guarded, {}, key),
        signToken(claims(), own.keys[0] ?? key),
        signToken(claims({ aud: guarded }), key),
      ]
      for (const token of attacks) expect((await callAs(guarded, token)).status).to.equal(401)
    }
  })

  it('accepts configured issuers on every route, and host-issued tokens where available', async () => {
    const own = ownServer()
    const routes = { '/guarded': GUARDED, '/open': { ...ALL, plugins: { own: false as const } } }
    const options = { ...machine, ownIssuer: true }
    const { guarded, open } = await startProtected({ own: own.plugin, 'auth-jwt': options }, { routes })
    for (const url of [guarded, open]) expect((await callAs(url, signToken(claims(), key))).status).to.equal(200)
    expect((await callAs(guarded, own.token(guarded))).status).to.equal(200)
    expect((await callAs(open, own.token(open))).status).to.equal(401)
  })

  it('accepts issuers whose keys are fetched', async () => {
    const [own, issuer] = [ownServer(), await startIssuer()]
    const options = { authority: issuer.url, ownIssuer: true }
    const { guarded } = await startProtected({ own: own.plugin, 'auth-jwt': options })
    for (const token of [issuer.token(guarded), own.token(guarded)]) {
      expect((await callAs(guarded, token)).status).to.equal(200)
    }
  })
})

describe('auth-jwt startup with a possible own authorization server', () => {
  const config = (options: object, more: object = {}) => ({
    toolsets: { all: [] },
    routes: { '/': ALL },
    plugins: { 'transport-streamable': {}, 'auth-jwt': options, ...more },
  })

  it('fails without an issuer or authorization server, and names both options', async () => {
    await expectStopped(config({}), /authority.*issuer.*auth-bridge/)
    await expectStopped(config({ ownIssuer: true }), /authority.*issuer.*auth-bridge/)
    const beside = { authority: OTHER, ownIssuer: true }
    await expectStopped(config(beside), "plugins['auth-jwt'].ownIssuer")
    await expectStopped(config({ ownIssuer: false }, { own: ownServer().plugin }), 'authority')
    await expectStopped(
      config({ algorithms: ['RS256'] }, { own: ownServer().plugin }),
      "plugins['auth-jwt'].algorithms",
    )
    const offLoopback = { ...config({}, { own: ownServer().plugin }), http: { host: '0.0.0.0' } }
    await expectStopped(offLoopback, /http\.publicUrl.*plugins\.auth-jwt\.audience/)
  })

  it('reports the same error for `mcp-host check`', async () => {
    const inspect = (more: object) => {
      const full = {
        server: { name: 'test', version: '1.0.0' },
        secrets: ['a secret for tests, long enough to be one'],
      }
      return createHost({ ...full, ...config({}, more) }, { log: createTestLog(), purpose: 'inspect' })
    }
    const host = await inspect({ own: ownServer().plugin })
    expect(host.inspect('/')).to.not.equal(undefined)
    await host.close()
    const [failed] = await Promise.allSettled([inspect({})])
    expect(failed)
      .to.have.nested.property('reason.message')
      .that.match(/auth-bridge/)
  })

  it('accepts fake tokens and host-issued tokens in testHost', async () => {
    const own = ownServer()
    const test = { server: { name: 'test', version: '1.0.0' }, ...config({}, { own: own.plugin }) }
    const whole = { ...test, toolsets: { all: [hello] }, routes: { '/guarded': GUARDED } }
    await using host = await testHost(whole)
    const guarded = `${host.url}/guarded`
    for (const token of [host.token({ subject: 'bob' }), own.token(guarded)]) {
      await using client = await host.client({ token })
      expect((await client.listTools()).map(({ name }) => name)).to.deep.equal(['hello'])
    }
    expect((await callAs(guarded, own.token(guarded, {}, makeKey('own-1')))).status).to.equal(401)
  })
})
