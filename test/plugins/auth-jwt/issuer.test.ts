import { expect } from 'chai'
import { metadataUrls } from '../../../plugins/families/issuer-keys/index.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { callAs, challengeHeader, readUser, startProtected } from '../../support/protected-host.ts'
import type { RpcMessage } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { makeKey, signToken, startIssuer, stopIssuers } from '../../support/test-issuer.ts'

afterEach(async () => {
  await stopHosts()
  await stopIssuers()
})

/** Asks until the answer has this status. */
const until = (wanted: number, ask: () => Promise<{ status: number }>) =>
  eventually(
    `an answer of ${wanted}`,
    async () => (await ask()).status,
    status => status === wanted,
  )

describe('auth-jwt: discovery', () => {
  it('requests the RFC 8414 URL first, then the OpenID Connect URLs', () => {
    expect(metadataUrls('https://a.example')).to.deep.equal([
      'https://a.example/.well-known/oauth-authorization-server',
      'https://a.example/.well-known/openid-configuration',
    ])
    expect(metadataUrls('https://a.example/realms/one/')).to.deep.equal([
      'https://a.example/.well-known/oauth-authorization-server/realms/one',
      'https://a.example/.well-known/openid-configuration/realms/one',
      'https://a.example/realms/one/.well-known/openid-configuration',
    ])
  })

  it('accepts either metadata document', async () => {
    for (const metadataPath of ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']) {
      const issuer = await startIssuer({ metadataPath })
      const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
      expect((await callAs(guarded, issuer.token(guarded))).status, metadataPath).to.equal(200)
      expect(issuer.asked.slice(-2)).to.deep.equal([metadataPath, '/jwks'])
    }
  })

  it('requests the next URL if there is no response', async () => {
    const metadataPath = '/.well-known/openid-configuration'
    const issuer = await startIssuer({ metadataPath, brokenPath: '/.well-known/oauth-authorization-server' })
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
  })

  it('rejects metadata of another issuer, with a trailing slash or with a non-HTTP jwks_uri', async () => {
    const issuer = await startIssuer()
    for (const metadata of [{ issuer: `${issuer.url}/` }, { jwks_uri: 'file:///etc/keys' }, { jwks_uri: undefined }]) {
      issuer.metadata = metadata
      const { guarded, log } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
      expect((await callAs(guarded, issuer.token(guarded))).status, JSON.stringify(metadata)).to.equal(503)
      expect(log.some(({ message = '' }) => message.startsWith('the keys of the issuer cannot be fetched'))).to.equal(
        true,
      )
    }
  })
})

describe('auth-jwt: issuer outage', () => {
  it('at startup answers 503 with Retry-After, then 200 after recovery', async () => {
    const issuer = await startIssuer()
    issuer.mood = 'broken'
    const clock = createManualClock()
    const plugins = { 'auth-jwt': { authority: issuer.url }, health: {} }
    const { guarded, open, url } = await startProtected(plugins, {}, { clock })
    for (const address of [guarded, open]) {
      const answer = await callAs(address, issuer.token(address))
      expect(answer.status).to.equal(503)
      expect(answer.headers.get('retry-after')).to.match(/^[12]$/)
    }
    expect((await callAs(guarded, undefined)).status).to.equal(401)
    expect((await callAs(open, undefined)).status, 'anonymous callers need no issuer').to.equal(200)
    const health = await fetch(`${url}/health`)
    expect(health.status).to.equal(503)
    const { checks } = (await health.json()) as RpcMessage
    expect(checks).to.include({ [`auth-jwt: keys of ${issuer.url}`]: false })
    issuer.mood = 'well'
    await until(200, async () => {
      await clock.advance(500)
      return callAs(guarded, issuer.token(guarded))
    })
    expect((await fetch(`${url}/health`)).status).to.equal(200)
  })

  it('after startup uses the cached keys', async () => {
    const issuer = await startIssuer()
    const { guarded, log } = await startProtected({ 'auth-jwt': { authority: issuer.url, jwksMaxAge: '1ms' } })
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
    issuer.mood = 'broken'
    const failed = () => log.some(({ level }) => level === 'error')
    await eventually('a failure in the log', async () => {
      expect((await callAs(guarded, issuer.token(guarded, { jti: 'b' }))).status).to.equal(200)
      return failed()
    })
    expect((await callAs(guarded, issuer.token(guarded, { jti: 'c' }))).status).to.equal(200)
  })

  it('beyond the stale age answers 503, even for verified tokens', async () => {
    const issuer = await startIssuer()
    const ages = { jwksMaxAge: '1ms', jwksMaxStale: '1ms' }
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url, ...ages } })
    const token = issuer.token(guarded)
    await callAs(guarded, token)
    issuer.mood = 'broken'
    await until(503, () => callAs(guarded, token))
  })
})

describe('auth-jwt: key rotation', () => {
  it('accepts tokens of a new key at once, and of the old key while published', async () => {
    const issuer = await startIssuer()
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
    const old = issuer.token(guarded)
    expect((await callAs(guarded, old)).status).to.equal(200)
    issuer.keys = [makeKey('second'), ...issuer.keys]
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
    expect((await callAs(guarded, old)).status).to.equal(200)
  })

  it('rejects a verified token as soon as its key is known to be withdrawn', async () => {
    const issuer = await startIssuer()
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
    const stolen = issuer.token(guarded)
    expect((await callAs(guarded, stolen)).status).to.equal(200)
    issuer.keys = [makeKey('second')]
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
    const answer = await callAs(guarded, stolen)
    expect(answer.status).to.equal(401)
    expect(challengeHeader(answer)).to.contain('no key of its issuer')
  })

  it('rejects tokens of a withdrawn key at the maximum age at the latest', async () => {
    const issuer = await startIssuer()
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url, jwksMaxAge: '100ms' } })
    const stolen = issuer.token(guarded)
    expect((await callAs(guarded, stolen)).status).to.equal(200)
    issuer.keys = []
    await until(401, () => callAs(guarded, stolen))
  })

  it('detects a new key under a reused kid', async () => {
    const issuer = await startIssuer()
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url, jwksMaxAge: '100ms' } })
    const old = issuer.token(guarded)
    expect((await callAs(guarded, old)).status).to.equal(200)
    issuer.keys = [makeKey('first')]
    await until(401, () => callAs(guarded, old))
    expect((await callAs(guarded, issuer.token(guarded))).status).to.equal(200)
  })
})

describe('auth-jwt: several issuers', () => {
  it('verify tokens with their own keys, audience and claims', async () => {
    const [one, two] = [await startIssuer(), await startIssuer({ keys: [makeKey('first')] })]
    const { guarded } = await startProtected({
      'auth-jwt': {
        audience: 'shared',
        issuers: [{ authority: one.url }, { authority: two.url, audience: 'own', claims: { subject: 'email' } }],
      },
    })
    const a = readUser(await callAs(guarded, one.token('shared')))
    const b = readUser(await callAs(guarded, two.token('own', { email: 'ann@two.example' })))
    expect([a.issuer, a.subject]).to.deep.equal([one.url, 'ann'])
    expect([b.issuer, b.subject]).to.deep.equal([two.url, 'ann@two.example'])
    expect((await callAs(guarded, one.token('own'))).status).to.equal(401)
  })

  it('are independent: an outage of one does not affect the other', async () => {
    const [one, two] = [await startIssuer(), await startIssuer()]
    one.mood = 'broken'
    const { guarded } = await startProtected({
      'auth-jwt': { issuers: [{ authority: one.url }, { authority: two.url }] },
    })
    expect((await callAs(guarded, one.token(guarded))).status).to.equal(503)
    expect((await callAs(guarded, two.token(guarded))).status).to.equal(200)
  })
})

describe('auth-jwt: algorithms of the default list', () => {
  it('verifies every algorithm', async () => {
    const algorithms = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512']
    const keys = algorithms.map(alg => makeKey(alg, alg))
    const issuer = await startIssuer({ keys })
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } })
    for (const key of keys) {
      const answer = await callAs(guarded, signToken(issuer.claims(guarded), key))
      expect(answer.status, `${key.alg} ${challengeHeader(answer)}`).to.equal(200)
    }
  })
})
