import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import {
  callAs,
  callWith,
  challengeHeader,
  type ProtectedHost,
  readUser,
  startProtected,
} from '../../support/protected-host.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { inSeconds, makeKey, signToken, startIssuer, stopIssuers, type TestIssuer } from '../../support/test-issuer.ts'

let issuer: TestIssuer
let host: ProtectedHost
before(async () => {
  issuer = await startIssuer()
  host = await startProtected({ 'auth-jwt': { authority: issuer.url } })
})
after(async () => {
  await stopHosts()
  await stopIssuers()
})

describe('auth-jwt: valid token', () => {
  it('provides issuer, subject, client, scopes, roles and claims to the handler', async () => {
    const changes = { scope: 'read write', roles: ['admin'], tier: 'gold' }
    const user = readUser(await callAs(host.guarded, issuer.token(host.guarded, changes)))
    expect(user).to.deep.include({ issuer: issuer.url, subject: 'ann', clientId: 'a-client' })
    expect(user).to.deep.include({ scopes: ['read', 'write'], roles: ['admin'] })
    expect(user.claims).to.include({ tier: 'gold', sub: 'ann' })
  })

  it('is accepted only for the route URL if no audience is configured', async () => {
    const token = issuer.token(host.guarded)
    expect((await callAs(host.guarded, token)).status).to.equal(200)
    const elsewhere = await callAs(host.open, token)
    expect(elsewhere.status).to.equal(401)
    expect(challengeHeader(elsewhere)).to.contain('another audience')
    const [line] = host.log.filter(({ message, route }) => message === 'refused a token' && route === '/open')
    expect(line).to.deep.include({ reason: 'the token is for another audience', audience: [host.open] })
    expect((await callAs(host.guarded, token)).status).to.equal(200)
  })

  it('can have several audiences, one of which must match', async () => {
    const token = issuer.token(host.guarded, { aud: ['https://other.example', host.guarded] })
    expect((await callAs(host.guarded, token)).status).to.equal(200)
  })

  it('is accepted with a scheme in any letter case', async () => {
    const token = issuer.token(host.guarded)
    for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
      expect((await callWith(host.guarded, { Authorization: `${scheme} ${token}` })).status, scheme).to.equal(200)
    }
  })

  it('identifies the user on a route without required authentication', async () => {
    expect(readUser(await callAs(host.open, issuer.token(host.open))).subject).to.equal('ann')
    expect(readUser(await callAs(host.open, undefined))).to.equal(null)
  })

  it('of a client without a user uses the client as subject', async () => {
    const user = readUser(await callAs(host.guarded, issuer.token(host.guarded, { sub: undefined })))
    expect(user).to.include({ subject: 'a-client', clientId: 'a-client' })
  })

  it('is accepted with each access token type (typ)', async () => {
    const [key = makeKey('none')] = issuer.keys
    for (const typ of ['JWT', 'at+jwt', 'AT+JWT', 'application/at+jwt', undefined]) {
      const token = signToken(issuer.claims(host.guarded), key, { typ })
      expect((await callAs(host.guarded, token)).status, String(typ)).to.equal(200)
    }
  })

  it('is accepted without kid if the issuer has many keys without kid', async () => {
    const nameless = (count: number) =>
      Array.from({ length: count }, () => ({ ...makeKey('').publicKey.export({ format: 'jwk' }), use: 'sig' }))
    const key = makeKey('last')
    for (const [count, status] of [
      [31, 200],
      [33, 401],
    ] as const) {
      const many = await startIssuer({ keys: [] })
      many.others = [...nameless(count), { ...key.publicKey.export({ format: 'jwk' }), use: 'sig' }]
      const host = await startProtected({ 'auth-jwt': { authority: many.url } })
      const token = signToken(many.claims(host.guarded), key, { kid: undefined })
      const answer = await callAs(host.guarded, token)
      expect(answer.status).to.equal(status)
      if (status === 401) expect(challengeHeader(answer)).to.include('has no key id (kid)')
    }
  })

  it('is accepted within the clock tolerance and rejected beyond it', async () => {
    const times = [
      [{ exp: inSeconds(-30) }, 200],
      [{ exp: inSeconds(-90) }, 401],
      [{ nbf: inSeconds(30) }, 200],
      [{ nbf: inSeconds(90) }, 401],
      [{ iat: inSeconds(30) }, 200],
      [{ iat: inSeconds(90) }, 401],
    ] as const
    for (const [changes, status] of times) {
      const answer = await callAs(host.guarded, issuer.token(host.guarded, changes))
      expect(answer.status, JSON.stringify(changes)).to.equal(status)
    }
  })

  it('cannot be changed by a handler for later requests', async () => {
    const meddle = defineTool({
      name: 'whoami',
      handler(_, { user }) {
        const { claims } = user ?? {}
        const refused = [user, claims, claims?.['nested']].map(part => !Reflect.set(Object(part), 'role', 'root'))
        return { user, refused }
      },
    })
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url } }, { toolsets: { all: [meddle] } })
    const token = issuer.token(guarded, { scope: 'read', nested: { deep: ['a'] } })
    const first = (await callAs(guarded, token)).message.result.structuredContent
    expect(first.refused).to.deep.equal([true, true, true])
    expect(readUser(await callAs(guarded, token))).to.deep.equal(first.user)
  })
})

describe('auth-jwt: error responses', () => {
  it('are 401 without an error code if no token was sent', async () => {
    const answer = await callAs(host.guarded, undefined)
    expect([answer.status, challengeHeader(answer)]).to.deep.equal([401, 'Bearer'])
  })

  it('name the scope of the route, with an invalid token and without a token', async () => {
    expect(challengeHeader(await callAs(host.writers, undefined))).to.equal('Bearer scope="write"')
    const bad = challengeHeader(await callAs(host.writers, 'nonsense'))
    expect(bad).to.equal('Bearer error="invalid_token", error_description="the token is not a JWT", scope="write"')
  })

  it('are 403 with the scope if a valid token lacks it', async () => {
    const answer = await callAs(host.writers, issuer.token(host.writers, { scope: 'read' }))
    expect(answer.status).to.equal(403)
    expect(challengeHeader(answer)).to.contain('error="insufficient_scope"').and.to.contain('scope="write"')
    expect((await callAs(host.writers, issuer.token(host.writers, { scope: 'write' }))).status).to.equal(200)
  })

  it('are 401 for an invalid token on an open route', async () => {
    expect((await callAs(host.open, 'nonsense')).status).to.equal(401)
  })

  it('are 400 invalid_request for a token in the query, even with a valid header', async () => {
    for (const url of [host.guarded, host.open]) {
      const token = issuer.token(url)
      for (const header of [undefined, token]) {
        const answer = await callAs(`${url}?access_token=${token}`, header)
        expect(answer.status).to.equal(400)
        expect(challengeHeader(answer)).to.contain('error="invalid_request"')
      }
    }
  })

  it('treat another scheme as no token', async () => {
    const headers = { Authorization: 'Basic YTpi' }
    expect(challengeHeader(await callWith(host.guarded, headers))).to.equal('Bearer')
    expect(readUser(await callWith(host.open, headers))).to.equal(null)
  })

  it('apply to every HTTP method before method checks', async () => {
    for (const method of ['GET', 'POST', 'DELETE', 'PUT']) {
      expect((await fetch(host.guarded, { method })).status, method).to.equal(401)
    }
  })

  it('name the rejected algorithm, for example ES256K', async () => {
    const token = signToken(issuer.claims(host.guarded), makeKey('ed'), { alg: 'ES256K' })
    const answer = await callAs(host.guarded, token)
    expect(answer.status).to.equal(401)
    expect(challengeHeader(answer)).to.contain('the algorithm ES256K is not accepted')
  })

  it('are logged as one warning with reason, route and IP address, never the token', async () => {
    const token = issuer.token(host.guarded, { exp: inSeconds(-1_000) })
    host.log.length = 0
    await callAs(host.guarded, token)
    const lines = host.log.filter(({ level }) => level !== 'debug')
    expect(lines).to.have.lengthOf(1)
    expect(lines[0]).to.include({
      level: 'warn',
      plugin: 'auth-jwt',
      reason: 'the token has expired',
      route: '/guarded',
    })
    expect(lines[0]).to.have.property('ip')
    for (const part of token.split('.')) expect(JSON.stringify(host.log)).not.to.contain(part)
  })
})

describe('auth-jwt: reasons of refused tokens', () => {
  const reasonOf = async (claims: Readonly<Record<string, unknown>>) => {
    host.log.length = 0
    const answer = await callAs(host.guarded, issuer.token(host.guarded, claims))
    return { line: host.log.find(({ code }) => code === 'MH1222'), challenge: challengeHeader(answer) }
  }

  it('name the difference of the clocks and the tolerance', async () => {
    for (const claim of ['iat', 'nbf']) {
      const { line } = await reasonOf({ [claim]: inSeconds(300) })
      expect(line?.['reason']).to.match(
        /\((?:iat|nbf)\): by (?:299|300|301) s, tolerance 60 s; check the clocks of the issuer and of this host$/,
      )
    }
  })

  it('name the issuer of the token, shortened and without control characters, and the accepted issuers in the log only', async () => {
    const { line, challenge } = await reasonOf({ iss: `https://other.example/\n${'x'.repeat(200)}` })
    expect(line).to.deep.include({
      reason: 'the token is from another issuer',
      issuer: `https://other.example/?${'x'.repeat(77)}`,
      issuers: [issuer.url],
    })
    expect(challenge).to.not.match(/other\.example/)
    for (const iss of [{ a: 1 }, { toString: 1 }]) expect((await reasonOf({ iss })).line).to.include({ issuer: '' })
  })
})

describe('auth-jwt: challenge', () => {
  it('contains the resource metadata URL if available', async () => {
    const { guarded } = await startProtected({
      'auth-jwt': { authority: issuer.url },
      'resource-metadata': { authorizationServers: [issuer.url] },
    })
    const pointer = /resource_metadata="http:[^"]*\/\.well-known\/oauth-protected-resource\/guarded"/
    expect(challengeHeader(await callAs(guarded, undefined))).to.match(pointer)
    expect(challengeHeader(await callAs(guarded, 'nonsense')))
      .to.match(pointer)
      .and.to.contain('error="invalid_token"')
  })
})

describe('auth-jwt: audience', () => {
  it('of a bare origin matches with and without a trailing slash', async () => {
    const { guarded } = await startProtected({ 'auth-jwt': { authority: issuer.url, audience: 'https://mcp.example' } })
    for (const [aud, status] of [
      ['https://mcp.example', 200],
      ['https://mcp.example/', 200],
      ['https://mcp.example/a', 401],
      ['http://mcp.example', 401],
    ] as const) {
      expect((await callAs(guarded, issuer.token(aud))).status, aud).to.equal(status)
    }
  })

  it('can be a list, and can differ per route', async () => {
    const { guarded, open } = await startProtected(
      { 'auth-jwt': { authority: issuer.url, audience: ['one', 'two'] } },
      {
        routes: {
          '/guarded': { toolsets: 'all', authorize: true },
          '/open': { toolsets: 'all', plugins: { 'auth-jwt': { audience: 'three' } } },
        },
      },
    )
    const statuses = async (url: string) =>
      Promise.all(['one', 'two', 'three'].map(async aud => (await callAs(url, issuer.token(aud))).status))
    expect(await statuses(guarded)).to.deep.equal([200, 200, 401])
    expect(await statuses(open)).to.deep.equal([401, 401, 200])
  })
})

describe('auth-jwt: user', () => {
  it('is available in configureSession', async () => {
    const seen: unknown[] = []
    const { guarded } = await startProtected(
      { 'auth-jwt': { authority: issuer.url } },
      { configureSession: ({ user }) => void seen.push(user?.claims['tier']) },
    )
    await modern(
      guarded,
      'tools/list',
      {},
      { headers: { Authorization: `Bearer ${issuer.token(guarded, { tier: 'gold' })}` } },
    )
    expect(seen).to.deep.equal(['gold'])
  })
})
