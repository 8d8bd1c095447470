// Tests auth-jwt with a real authorization server (oidc-provider) over loopback HTTP.
import { expect } from 'chai'
import {
  type AuthorizationServer,
  startAuthorizationServer,
  stopAuthorizationServers,
} from '../../support/authorization-server.ts'
import { callAs, challengeHeader, type ProtectedHost, readUser, startProtected } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { encode, makeKey, signToken } from '../../support/test-issuer.ts'

const [first, second] = [makeKey('first'), makeKey('second')]

let authority: AuthorizationServer
let host: ProtectedHost
beforeEach(async () => {
  authority = await startAuthorizationServer([first])
  host = await startProtected({ 'auth-jwt': { authority: authority.url } })
})
afterEach(async () => {
  await stopHosts()
  await stopAuthorizationServers()
})

const issue = (resource: string, scope?: string) => authority.issue({ resource, ...(scope !== undefined && { scope }) })

describe('auth-jwt with an authorization server', () => {
  it('accepts a token issued for the route, with its client and scopes', async () => {
    const user = readUser(await callAs(host.guarded, await issue(host.guarded, 'read write')))
    expect(user).to.deep.include({ issuer: authority.url, clientId: 'a-client', scopes: ['read', 'write'] })
  })

  it('rejects a token issued for another resource (audience)', async () => {
    const answer = await callAs(host.guarded, await issue('https://other.example/mcp'))
    expect([answer.status, challengeHeader(answer)?.includes('another audience')]).to.deep.equal([401, true])
  })

  it('answers 403 with the missing scope, and accepts a token that has it', async () => {
    const answer = await callAs(host.writers, await issue(host.writers, 'read'))
    expect([answer.status, challengeHeader(answer)?.includes('scope="write"')]).to.deep.equal([403, true])
    expect((await callAs(host.writers, await issue(host.writers, 'read write'))).status).to.equal(200)
  })

  it('accepts new tokens during key rotation, and old ones while their key is published', async () => {
    const old = await issue(host.guarded)
    expect((await callAs(host.guarded, old)).status).to.equal(200)
    authority.useKeys([second, first])
    expect((await callAs(host.guarded, await issue(host.guarded))).status).to.equal(200)
    expect((await callAs(host.guarded, old)).status).to.equal(200)
  })

  it('rejects tokens of a withdrawn key after the new key triggers a key fetch', async () => {
    const old = await issue(host.guarded)
    expect((await callAs(host.guarded, old)).status).to.equal(200)
    authority.useKeys([second])
    expect((await callAs(host.guarded, await issue(host.guarded))).status).to.equal(200)
    expect((await callAs(host.guarded, old)).status).to.equal(401)
  })

  it('rejects a tampered token, and one signed by another key with the same kid', async () => {
    const [header = '', claims = '', signature = ''] = (await issue(host.guarded)).split('.')
    const read = JSON.parse(Buffer.from(claims, 'base64url').toString())
    const tampered = [header, encode({ ...read, scope: 'read write' }), signature].join('.')
    for (const token of [tampered, signToken(read, makeKey('first'))]) {
      expect((await callAs(host.guarded, token)).status).to.equal(401)
    }
  })

  it('rejects an opaque token', async () => {
    authority.opaque.add(host.guarded)
    expect((await callAs(host.guarded, await issue(host.guarded))).status).to.equal(401)
  })

  it('accepts known and new tokens while the authorization server is down', async () => {
    const [known, unknown] = [await issue(host.guarded), await issue(host.guarded)]
    expect((await callAs(host.guarded, known)).status).to.equal(200)
    authority.failWith = 500
    for (const token of [known, unknown]) expect((await callAs(host.guarded, token)).status).to.equal(200)
  })
})
