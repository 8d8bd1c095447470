// Tests routes with several authentication plugins: order, refusals, challenges, and the separation of their users.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { checkChallenge, readChallenge } from '../../cli/doctor/challenge.ts'
import { defineTool } from '../../core/index.ts'
import { pluginIssuer } from '../../core/kernel/authenticators.ts'
import { authorizeRoute, definePlugin, HostError } from '../../core/plugin.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { apiKeys, CHALLENGE } from '../fixtures/api-keys.ts'
import { linesIn } from '../plugins/audit/audited-host.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { callWith, challengeHeader, readUser, startProtected } from '../support/protected-host.ts'
import { modern, type RpcAnswer } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { inSeconds, startIssuer, stopIssuers, type TestIssuer } from '../support/test-issuer.ts'

const PLUGIN_ISSUER = 'urn:mcp-host:plugin:keys'

let issuer: TestIssuer
before(async () => {
  issuer = await startIssuer()
})
after(async () => {
  await stopHosts()
  await stopIssuers()
  await removeFolders()
})

const KEYS = { 'key-ann': { subject: 'ann', scopes: ['read'] }, 'key-bob': { subject: 'bob' } }
const jwt = () => ({
  'auth-jwt': { authority: issuer.url },
  'resource-metadata': { authorizationServers: [issuer.url] },
})

const start = (order: 'keys first' | 'tokens first', more: Parameters<typeof startProtected>[1] = {}) => {
  const keys = { keys: apiKeys(KEYS) }
  return startProtected(order === 'keys first' ? { ...keys, ...jwt() } : { ...jwt(), ...keys }, more)
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
const key = (text: string) => ({ 'X-Api-Key': text })
const who = (answer: RpcAnswer) => [readUser(answer)?.issuer, readUser(answer)?.subject]

describe('Several authenticators on a route', () => {
  it('accept the credentials of each, and keep equal subjects apart', async () => {
    const { guarded } = await start('tokens first')
    const token = issuer.token(guarded)
    expect(who(await callWith(guarded, bearer(token)))).to.deep.equal([issuer.url, 'ann'])
    expect(who(await callWith(guarded, key('key-ann')))).to.deep.equal([PLUGIN_ISSUER, 'ann'])
  })

  it('ask for no token where only other credentials are accepted', async () => {
    const { writers, log } = await startProtected({ keys: apiKeys(KEYS) })
    expect(log.filter(({ code }) => code === 'MH1215')).to.deep.equal([])
    const refused = await callWith(writers, key('key-ann'))
    expect([refused.status, refused.headers.get('www-authenticate')]).to.deep.equal([403, null])
  })

  it('name their users by the config key, or by the file name without folder and extension', () => {
    const keys = ['keys', '@acme/keys', './a/login.ts', '../a/api.ts', '/b/api.ts']
    expect(keys.map(name => pluginIssuer(name, keys).slice('urn:mcp-host:plugin:'.length))).to.deep.equal([
      'keys',
      '%40acme%2Fkeys',
      'login',
      '..%2Fa%2Fapi.ts',
      '%2Fb%2Fapi.ts',
    ])
  })

  for (const order of ['keys first', 'tokens first'] as const) {
    it(`use the first that recognises the credentials: ${order}`, async () => {
      const { guarded } = await start(order)
      const token = issuer.token(guarded)
      const expected = order === 'keys first' ? [PLUGIN_ISSUER, 'bob'] : [issuer.url, 'ann']
      expect(who(await callWith(guarded, { ...bearer(token), ...key('key-bob') }))).to.deep.equal(expected)
    })

    it(`end with 401 at the first that rejects them: ${order}`, async () => {
      const { guarded } = await start(order)
      const token = issuer.token(guarded)
      const expired = issuer.token(guarded, { exp: 1 })
      const wrongKey = await callWith(guarded, { ...bearer(token), ...key('wrong') })
      const wrongToken = await callWith(guarded, { ...bearer(expired), ...key('key-ann') })
      expect([wrongKey.status, wrongToken.status]).to.deep.equal(order === 'keys first' ? [401, 200] : [200, 401])
      const refused = order === 'keys first' ? wrongKey : wrongToken
      expect(refused.message.error.message).to.include(order === 'keys first' ? 'the API key is unknown' : 'expired')
    })

    it(`pass on a token that is not theirs, and refuse it if no other accepts it: ${order}`, async () => {
      const { guarded, open } = await start(order)
      const foreign = bearer('not-a-jwt')
      expect(who(await callWith(guarded, { ...foreign, ...key('key-ann') }))).to.deep.equal([PLUGIN_ISSUER, 'ann'])
      for (const url of [guarded, open]) {
        const refused = await callWith(url, foreign)
        expect([refused.status, refused.message.error.message]).to.deep.equal([
          401,
          'Authentication required: the token is not a JWT',
        ])
      }
    })
  }

  it('share bearer tokens: auth-jwt passes opaque tokens and other issuers on to auth-introspection', async () => {
    const asked: string[] = []
    const server = createServer(async (request, response) => {
      const token = new URLSearchParams(await text(request)).get('token') ?? ''
      asked.push(token)
      const claims = { iss: 'https://other.example', sub: 'ann', aud: 'me', client_id: 'a', exp: inSeconds(300) }
      const body = token === 'opaque' ? { active: true, ...claims } : { active: false }
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const introspection = { endpoint, clientId: 'host', clientSecret: 'a-secret', audience: 'me' }
    const { guarded } = await startProtected({ ...jwt(), 'auth-introspection': introspection })
    try {
      expect(who(await callWith(guarded, bearer(issuer.token(guarded))))).to.deep.equal([issuer.url, 'ann'])
      expect(who(await callWith(guarded, bearer('opaque')))).to.deep.equal(['https://other.example', 'ann'])
      const expired = await callWith(guarded, bearer(issuer.token(guarded, { exp: 1 })))
      const unknown = await callWith(guarded, bearer('unknown'))
      expect([expired.status, unknown.status]).to.deep.equal([401, 401])
      expect(challengeHeader(unknown)).to.match(
        /^Bearer error="invalid_token", error_description="the token is not a JWT"/,
      )
      expect(asked).to.deep.equal(['opaque', 'unknown'])
    } finally {
      server.close()
    }
  })

  it('refuse introspected tokens of the issuer of auth-jwt, and revoked JWTs of the issuer of auth-introspection', async () => {
    let active = true
    const server = createServer(async (request, response) => {
      await text(request)
      const claims = { iss: issuer.url, sub: 'ann', aud: 'me', exp: inSeconds(300) }
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ active, ...(active && claims) }))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const asked = { endpoint, clientId: 'host', clientSecret: 'a-secret', audience: 'me', cacheFor: '0s' }
    const signed = { authority: issuer.url, audience: 'me' }
    const startBoth = (own: string | undefined) =>
      startProtected({
        'auth-introspection': { ...asked, ...(own !== undefined && { issuer: own }) },
        'auth-jwt': signed,
        'resource-metadata': { authorizationServers: [issuer.url] },
      })
    try {
      const unnamed = await callWith((await startBoth(undefined)).guarded, bearer('opaque'))
      expect(challengeHeader(unnamed)).to.include('the token is of the issuer of another plugin')
      const { guarded } = await startBoth(issuer.url)
      const token = bearer(issuer.token('me'))
      expect((await callWith(guarded, token)).status).to.equal(200)
      active = false
      expect((await callWith(guarded, token)).status).to.equal(401)
    } finally {
      server.close()
    }
  })

  it('announce all challenges, the bearer challenge with resource_metadata first', async () => {
    const { guarded, url } = await start('keys first')
    const metadata = `resource_metadata="${url}/.well-known/oauth-protected-resource/guarded"`
    const none = await callWith(guarded, {})
    expect([none.status, challengeHeader(none)]).to.deep.equal([401, `Bearer ${metadata}, ${CHALLENGE}`])
    const wrongKey = await callWith(guarded, key('wrong'))
    expect([wrongKey.status, challengeHeader(wrongKey)]).to.deep.equal([401, `Bearer ${metadata}, ${CHALLENGE}`])
    const expired = challengeHeader(await callWith(guarded, bearer(issuer.token(guarded, { exp: 1 })))) ?? ''
    expect(expired).to.match(/^Bearer error="invalid_token", .*resource_metadata=".*", ApiKey realm="acme"$/)
    const read = readChallenge({ 'www-authenticate': expired })
    expect([...(read?.keys() ?? [])]).to.deep.equal(['error', 'error_description', 'resource_metadata'])
  })

  it('announce no bearer challenge if none takes bearer tokens', async () => {
    const { guarded } = await startProtected({ keys: apiKeys(KEYS) })
    expect(challengeHeader(await callWith(guarded, {}))).to.equal(CHALLENGE)
    expect(challengeHeader(await callWith(guarded, key('wrong')))).to.equal(CHALLENGE)
  })

  it('keep the other headers of a 401, and any spelling of its challenge', async () => {
    const refusing = (headers: Record<string, string>) =>
      definePlugin({
        provides: ['user', 'authorize'],
        setup(host) {
          const refuse = () => {
            throw new HostError('unauthorized', { detail: 'refused', headers })
          }
          host.authenticate(refuse, { challenge: CHALLENGE })
          host.authorize(authorizeRoute(host))
        },
      })()
    const limited = await startProtected({ keys: refusing({ 'Retry-After': '3' }) })
    const answer = await callWith(limited.guarded, {})
    expect([challengeHeader(answer), answer.headers.get('retry-after')]).to.deep.equal([CHALLENGE, '3'])
    const own = await startProtected({ keys: refusing({ 'www-authenticate': 'Custom a="b"' }) })
    expect(challengeHeader(await callWith(own.guarded, {}))).to.equal('Custom a="b"')
  })

  it('run all hooks of the first plugin that sets a user', async () => {
    const twice = definePlugin({
      provides: ['user', 'authorize'],
      setup(host) {
        host.authenticate((ctx, next) => {
          ctx.state.user = { subject: 'ann', scopes: [], roles: [], claims: {} }
          return next()
        })
        host.authenticate((ctx, next) => {
          if (ctx.req.headers['x-blocked']) throw new HostError('forbidden', { detail: 'blocked' })
          return next()
        })
        host.authorize(authorizeRoute(host))
      },
    })()
    for (const plugins of [{ twice }, { keys: apiKeys(KEYS), twice }]) {
      const { guarded } = await startProtected(plugins)
      expect((await callWith(guarded, {})).status).to.equal(200)
      expect((await callWith(guarded, { 'X-Blocked': '1' })).status).to.equal(403)
    }
  })

  it('stop startup if none enforces `authorize` of the route', async () => {
    const forgetful = definePlugin({
      provides: ['user', 'authorize'],
      setup: host => host.authenticate((_ctx, next) => next()),
    })()
    const why = 'plugins.keys does not enforce it: call host.authorize(authorizeRoute(host)) in its setup'
    const limits = definePlugin({ setup: host => host.authorize((_ctx, next) => next()) })()
    for (const more of [{}, { limits }])
      expect(await startProtected({ keys: forgetful, ...more }).catch(String)).to.include(why)
    await startProtected({ ...jwt(), keys: forgetful })
  })

  it('always run hooks of the old name host.identify, which can change or refuse users of other plugins', async () => {
    const old = definePlugin({
      setup(host) {
        host.identify((ctx, next) => {
          const { user } = ctx.state
          if (user?.subject === 'bob') throw new HostError('forbidden', { detail: 'blocked' })
          if (user) ctx.state.user = { ...user, roles: ['enriched'] }
          return next()
        })
      },
    })()
    const { guarded } = await startProtected({ keys: apiKeys(KEYS), old })
    const ann = await callWith(guarded, key('key-ann'))
    expect(who(ann)).to.deep.equal([PLUGIN_ISSUER, 'ann'])
    expect(readUser(ann).roles).to.deep.equal(['enriched'])
    expect((await callWith(guarded, key('key-bob'))).status).to.equal(403)
    expect((await callWith(guarded, {})).status).to.equal(401)
  })

  it('apply route rules to the user of each', async () => {
    const { writers } = await start('keys first')
    expect((await callWith(writers, key('key-ann'))).status).to.equal(403)
    expect((await callWith(writers, bearer(issuer.token(writers, { scope: 'write' })))).status).to.equal(200)
  })

  it('are named in order by explain and check', async () => {
    const { host } = await start('keys first')
    expect(host.inspect('/guarded')?.authenticators).to.deep.equal(['keys', 'auth-jwt'])
    expect(host.routes[0]?.callers).to.equal('login required (keys, then auth-jwt)')
    const user = await host.inspect('/guarded')?.identify(`Bearer ${issuer.token(`${host.url}/guarded`)}`)
    expect([user?.issuer, user?.subject]).to.deep.equal([issuer.url, 'ann'])
  })

  it('are all reported by doctor', async () => {
    const { guarded } = await start('keys first')
    const { status, headers } = await callWith(guarded, {})
    const first = { status, headers: Object.fromEntries(headers) }
    const findings = await checkChallenge({ url: guarded, first } as never)
    const texts = findings.map(({ text }) => text)
    expect(texts).to.include('Other credentials are accepted: apikey')
    expect(texts).to.include('An invalid token gets 401 invalid_token')
  })
})

describe('Users of several authenticators', () => {
  const open = { routes: { '/open': { toolsets: 'all' } } }

  it("cannot use each other's sessions", async () => {
    const { open: url } = await start('tokens first')
    const [token, other] = [bearer(issuer.token(url)), key('key-ann')]
    for (const [own, foreign] of [
      [token, other],
      [other, token],
    ] as const) {
      const session = await openSession(url, { headers: own })
      expect((await session.request('ping')).status).to.equal(200)
      const headers = Object.fromEntries(Object.keys(own).map(name => [name, undefined]))
      expect((await session.request('ping', {}, { headers: { ...headers, ...foreign } })).status).to.equal(403)
      expect((await session.request('ping', {}, { headers: foreign })).status).to.equal(
        own === token ? 200 : 403,
        'the first authenticator decides if both credentials are sent',
      )
    }
  })

  it('cannot take the issuer of another plugin', async () => {
    const claiming = apiKeys({ key: { subject: 'ann', issuer: PLUGIN_ISSUER } }, 'x-other-key')
    const { open: url } = await startProtected({ keys: apiKeys(KEYS), claiming }, open)
    const refused = await callWith(url, { 'X-Other-Key': 'key' })
    expect([refused.status, refused.message.error.message, challengeHeader(refused)]).to.deep.equal([
      401,
      'Authentication required: the credentials name the issuer of another plugin',
      CHALLENGE,
    ])
  })

  it('are copied for each request, from objects that the plugin changes and from getters of a class', async () => {
    class Account {
      subject = ''
      scopes = ['write']
      get roles() {
        return [`role of ${this.subject}`]
      }
      get claims() {
        return {}
      }
    }
    const account = new Account()
    const reusing = definePlugin({
      provides: ['user', 'authorize'],
      setup(host) {
        host.authenticate((ctx, next) => {
          account.subject = String(ctx.req.headers['x-api-key'])
          if (account.subject === 'revoked') account.scopes = []
          ctx.state.user = account
          return next()
        })
        host.authorize(authorizeRoute(host))
      },
    })()
    const { writers } = await startProtected({ reusing })
    for (const name of ['ann', 'mallory']) {
      const { subject, roles } = readUser(await callWith(writers, key(name)))
      expect([subject, roles]).to.deep.equal([name, [`role of ${name}`]])
    }
    expect((await callWith(writers, key('revoked'))).status).to.equal(403)
  })

  it('can be the same user if both plugins name one issuer', async () => {
    const linked = apiKeys({ key: { subject: 'ann', issuer: issuer.url } })
    const { open: url } = await startProtected({ ...jwt(), linked }, open)
    const session = await openSession(url, { headers: bearer(issuer.token(url)) })
    const headers = { Authorization: undefined, ...key('key') }
    expect((await session.request('ping', {}, { headers })).status).to.equal(200)
  })

  it('keep their streams until their own credentials expire', async () => {
    const clock = createManualClock()
    const inTenMinutes = Math.floor(clock.now() / 1_000) + 600
    const keys = apiKeys({ short: { subject: 'ann', expiresAt: inTenMinutes * 1_000 }, long: { subject: 'bob' } })
    const { open: url, host } = await startProtected({ ...jwt(), keys }, open, { clock })
    const streamOf = async (headers: Record<string, string>) => (await openSession(url, { headers })).get()
    const [token, short, long] = await Promise.all([
      streamOf(bearer(issuer.token(url, { exp: inTenMinutes }))),
      streamOf(key('short')),
      streamOf(key('long')),
    ])
    await clock.advance(600_000)
    for (const ended of [token, short]) expect((await ended.rest()).at(-1)).to.include({ retry: 1_000 })
    host.runtime.tools.add(defineTool({ name: 'late', handler: () => '' }))
    for (let event = await long.next(); ; event = await long.next()) {
      if (event?.message === undefined) continue
      expect(event.message.method).to.equal('notifications/tools/list_changed')
      break
    }
    long.drop()
  })

  it('have separate rate limits and audit records', async () => {
    const folder = await makeFolder({})
    const { url, host } = await startHost(
      {
        toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
        routes: { '/': { toolsets: 'all', stateless: true } },
        plugins: {
          'transport-streamable': {},
          ...jwt(),
          keys: apiKeys(KEYS),
          'rate-limit': { user: '2/1m' },
          audit: { file: 'audit.jsonl' },
        },
      },
      folder,
    )
    const token = bearer(issuer.token(`${url}/`))
    const say = async (headers: Record<string, string>) =>
      (await modern(`${url}/`, 'tools/call', { name: 'say' }, { headers })).status
    expect([await say(token), await say(token), await say(token)]).to.deep.equal([200, 200, 429])
    expect([await say(key('key-ann')), await say(key('key-ann')), await say(key('key-ann'))]).to.deep.equal([
      200, 200, 429,
    ])
    await host.close({ grace: 0 })
    const said = (await linesIn(`${folder}/audit.jsonl`)).filter(({ name }) => name === 'say')
    const users = said.map(({ user }) => user)
    expect(users).to.have.length(4)
    expect([users[0] === users[1], users[2] === users[3], users[0] === users[2]]).to.deep.equal([true, true, false])
  })
})
