// Tests auth-introspection with a real authorization server (oidc-provider) over loopback HTTP.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { AuthIntrospectionOptions } from '../../../plugins/auth-introspection/index.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import {
  type AuthorizationServer,
  CLIENT,
  POSTING_SERVER,
  SERVER,
  startAuthorizationServer,
  stopAuthorizationServers,
} from '../../support/authorization-server.ts'
import { eventually } from '../../support/eventually.ts'
import { callAs, challengeHeader, readUser, startProtected } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { makeKey } from '../../support/test-issuer.ts'

const key = makeKey('a')
let authority: AuthorizationServer
beforeEach(async () => {
  authority = await startAuthorizationServer([key])
})
afterEach(async () => {
  await stopHosts()
  await stopAuthorizationServers()
})

const asServer = (changes: Partial<AuthIntrospectionOptions> = {}): AuthIntrospectionOptions => ({
  endpoint: authority.introspection,
  clientId: SERVER.id,
  clientSecret: SERVER.secret,
  ...changes,
})

/** A host that asks about tokens, whose three routes get opaque ones. */
async function start(changes: Partial<AuthIntrospectionOptions> = {}) {
  const host = await startProtected({ 'auth-introspection': asServer(changes) })
  for (const resource of [host.guarded, host.open, host.writers]) authority.opaque.add(resource)
  return host
}

const questions = () => authority.asked('/token/introspection')

describe('auth-introspection', () => {
  it('accepts an active token and provides its client, scopes and claims', async () => {
    const { guarded } = await start()
    const token = await authority.issue({ resource: guarded, scope: 'read write' })
    expect(token).not.to.contain('.')
    const user = readUser(await callAs(guarded, token))
    expect(user).to.deep.include({ issuer: authority.url, subject: CLIENT.id, clientId: CLIENT.id })
    expect(user.scopes).to.deep.equal(['read', 'write'])
  })

  it('sends client credentials in the body if configured', async () => {
    const { id: clientId, secret: clientSecret } = POSTING_SERVER
    const { guarded } = await start({ clientId, clientSecret, clientAuth: 'post' })
    expect((await callAs(guarded, await authority.issue({ resource: guarded }))).status).to.equal(200)
  })

  it('answers 401 with a challenge for an inactive token', async () => {
    const { guarded, open } = await start()
    for (const url of [guarded, open]) {
      const answer = await callAs(url, 'never-issued')
      expect(answer.status).to.equal(401)
      expect(challengeHeader(answer)).to.equal(
        'Bearer error="invalid_token", error_description="the token is not active"',
      )
    }
    expect(challengeHeader(await callAs(guarded, undefined))).to.equal('Bearer')
  })

  it('answers 403 with the required scope of the route', async () => {
    const { writers } = await start()
    const answer = await callAs(writers, await authority.issue({ resource: writers }))
    expect([answer.status, challengeHeader(answer)?.includes('scope="write"')]).to.deep.equal([403, true])
    const better = await authority.issue({ resource: writers, scope: 'read write' })
    expect((await callAs(writers, better)).status).to.equal(200)
  })

  it('rejects an active token with another audience', async () => {
    const { guarded, open, log } = await start()
    const token = await authority.issue({ resource: open })
    expect((await callAs(open, token)).status).to.equal(200)
    expect(challengeHeader(await callAs(guarded, token))).to.contain('another audience')
    const lines = log.filter(({ message }) => message === 'refused a token')
    expect(lines.map(({ audience }) => audience)).to.deep.equal([[guarded]])
  })

  it('accepts the configured audience instead of the route URL', async () => {
    const { guarded } = await start({ audience: ['https://a.example', 'https://b.example/'] })
    for (const resource of ['https://a.example/', 'https://b.example/', 'https://c.example/'])
      authority.opaque.add(resource)
    const status = async (resource: string) => (await callAs(guarded, await authority.issue({ resource }))).status
    expect(await status('https://a.example/')).to.equal(200)
    expect(await status('https://b.example/')).to.equal(200)
    expect(await status('https://c.example/')).to.equal(401)
  })

  it('accepts any audience if the check is disabled, and warns at startup', async () => {
    const { guarded, open, log } = await start({ validate: { audience: false } })
    expect((await callAs(guarded, await authority.issue({ resource: open }))).status).to.equal(200)
    expect(log.some(({ level, check }) => level === 'warn' && check === 'audience')).to.equal(true)
  })

  it('rejects a token of another issuer than the configured one', async () => {
    const { guarded } = await start({ issuer: 'https://other.example' })
    const answer = await callAs(guarded, await authority.issue({ resource: guarded }))
    expect(challengeHeader(answer)).to.contain('another issuer')
  })

  it('introspects a token once for concurrent and later requests (cache)', async () => {
    const { guarded } = await start()
    const token = await authority.issue({ resource: guarded })
    const many = await Promise.all(Array.from({ length: 10 }, () => callAs(guarded, token)))
    many.push(await callAs(guarded, token))
    expect(many.map(({ status }) => status)).to.deep.equal(Array(11).fill(200))
    expect(questions()).to.equal(1)
  })

  it('introspects every time without a cache, so revocation takes effect immediately', async () => {
    const { guarded } = await start({ cacheFor: 0 })
    const token = await authority.issue({ resource: guarded })
    expect((await callAs(guarded, token)).status).to.equal(200)
    expect((await callAs(guarded, token)).status).to.equal(200)
    await authority.revoke(token)
    expect((await callAs(guarded, token)).status).to.equal(401)
    expect(questions()).to.equal(3)
  })

  it('expires cached responses after the configured time', async () => {
    const { guarded } = await start({ cacheFor: '100ms' })
    const token = await authority.issue({ resource: guarded })
    expect((await callAs(guarded, token)).status).to.equal(200)
    await authority.revoke(token)
    await eventually(
      'the token is refused',
      async () => (await callAs(guarded, token)).status,
      status => status === 401,
    )
    expect(questions()).to.equal(2)
  })

  it('answers 503 with Retry-After while the server fails, and does not cache the failure', async () => {
    const { guarded, open, log } = await start()
    const token = await authority.issue({ resource: guarded })
    authority.failWith = 500
    for (const url of [guarded, open]) {
      const answer = await callAs(url, token)
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '5'])
    }
    expect((await callAs(open, undefined)).status).to.equal(200)
    authority.failWith = undefined
    expect((await callAs(guarded, token)).status).to.equal(200)
    expect(log.some(({ level }) => level === 'error')).to.equal(true)
    expect(JSON.stringify(log)).not.to.contain(token)
  })

  it('answers 503 for a deeply nested response', async () => {
    const levels = 50_000
    const deep = `{"active":true,"sub":"ann","groups":${'['.repeat(levels)}${']'.repeat(levels)}}`
    const server = createServer((_, response) => response.setHeader('Content-Type', 'application/json').end(deep))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const { guarded } = await start({ endpoint: `http://127.0.0.1:${port}/introspect` })
      const answer = await callAs(guarded, 'any')
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '5'])
    } finally {
      server.close()
    }
  })

  it('answers 503 and logs an error if the server rejects the client secret', async () => {
    const { guarded, log } = await start({ clientSecret: 'wrong' })
    expect((await callAs(guarded, await authority.issue({ resource: guarded }))).status).to.equal(503)
    const [line] = log.filter(({ level }) => level === 'error')
    expect(String(line?.['err'])).to.match(/clientId.*clientSecret/)
  })

  it('logs each rejection as one warning with its reason, never the token', async () => {
    const { guarded, log } = await start()
    log.length = 0
    await callAs(guarded, 'never-issued')
    const [line, ...others] = log.filter(({ level }) => level !== 'debug')
    expect(line).to.include({ level: 'warn', plugin: 'auth-introspection', reason: 'the token is not active' })
    expect(others).to.deep.equal([])
    expect(JSON.stringify(log)).not.to.contain('never-issued')
  })

  it('answers 400 for a token in the query without introspection', async () => {
    const { guarded } = await start()
    const token = await authority.issue({ resource: guarded })
    expect((await callAs(`${guarded}?access_token=${token}`, undefined)).status).to.equal(400)
    expect(questions()).to.equal(0)
  })
})

describe('auth-introspection: startup', () => {
  const config = (options: Partial<AuthIntrospectionOptions>) => ({
    toolsets: { all: [] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, 'auth-introspection': asServer(options) },
  })

  it('fails if the cache time exceeds five minutes', () => expectStopped(config({ cacheFor: '6m' }), 'more than 5m'))

  it('fails without a client secret or with an invalid audience', async () => {
    await expectStopped(config({ clientSecret: '' }), 'must not be empty')
    await expectStopped(config({ audience: [] }), 'audience')
  })
})
