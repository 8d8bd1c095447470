// Tests the client side of `mcp-host doctor`: problems of a server and their fixes, found by the client code.
import { expect } from 'chai'
import { examineAsClient } from '../../cli/doctor/client-view.ts'
import { examine } from '../../cli/doctor/examine.ts'
import type { Finding } from '../../cli/doctor/request.ts'
import { type FakeServers, startFakeServers, stopServers } from '../client/support/fake-servers.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { runCli, stopAll } from './in-process.ts'
import { type SdkServer, startSdkServer, stopSdkServers } from './sdk-server.ts'

const wrongs = (findings: readonly Finding[]) => findings.filter(({ level }) => level === 'wrong')

describe('mcp-host doctor, client side', () => {
  let sdk: SdkServer

  before(async () => {
    sdk = await startSdkServer()
  })
  after(async () => {
    await stopAll()
    await stopServers()
    await stopSdkServers()
    await stopHosts()
    await removeFolders()
  })

  it('finds no problem with a correct server, and lists its checks', async () => {
    const fake = await startFakeServers({ issuerPath: '/tenant' })
    fake.as.settings.wellKnown = ['oidc-append']
    fake.rs.settings.scopesSupported = ['read', 'write']
    const findings = await examineAsClient(fake.serverUrl)
    expect(wrongs(findings)).to.deep.equal([])
    const text = (check: string) => findings.find(finding => finding.check === check)?.text
    expect(text('client: scopes')).to.equal('a login requests read write (from the metadata)')
    expect(text('client: resource')).to.include(fake.serverUrl)
    const { url, issuer } = fake.as
    expect(text('client: issuer')).to.equal(
      `${issuer}, by ${issuer}/.well-known/openid-configuration [looked at ${[
        `${url}/.well-known/oauth-authorization-server/tenant (404)`,
        `${url}/.well-known/openid-configuration/tenant (404)`,
        `${issuer}/.well-known/openid-configuration (200)`,
      ].join(', ')}]`,
    )
    expect(text('client: registration')).to.contain('dynamic registration')
  })

  for (const [what, make, check, words, fix] of [
    [
      'a resource of another origin',
      ({ rs, as }) => Object.assign(rs.settings, { metadata: { resource: `${as.url}/mcp` } }),
      'resource',
      /is about http:\S+, not about/,
      /serverUrl/,
    ],
    [
      'a parent path as resource',
      ({ rs }) => Object.assign(rs.settings, { metadata: { resource: `${rs.url}/m` } }),
      'resource',
      /is about/,
      /`resource`/,
    ],
    [
      'metadata without an authorization server',
      ({ rs }) => Object.assign(rs.settings, { metadata: { authorization_servers: [] } }),
      'resource',
      /authorization_servers/,
      /publisher/,
    ],
    [
      'a challenge that is not ours',
      ({ rs }) => Object.assign(rs.settings, { challenges: ['Basic realm="x"'] }),
      'resource',
      /requires basic/,
      /Authorization header/,
    ],
    [
      'an issuer with a slash more',
      ({ as }) => Object.assign(as.settings, { metadata: { issuer: `${as.issuer}/` } }),
      'issuer',
      /names the issuer/,
      /issuerMatch: "ignore-trailing-slash"/,
    ],
    [
      'another issuer',
      ({ as }) => Object.assign(as.settings, { metadata: { issuer: 'https://other.example' } }),
      'issuer',
      /https:\/\/other\.example/,
      /trustedIssuers/,
    ],
    [
      'no PKCE',
      ({ as }) => Object.assign(as.settings, { codeChallengeMethods: undefined }),
      'issuer',
      /PKCE/,
      /assumePkceS256/,
    ],
    [
      'no metadata of the issuer',
      ({ as }) => Object.assign(as.settings, { wellKnown: [] }),
      'issuer',
      /publishes no authorization server metadata \[looked at \S+oauth-authorization-server \(404\), \S+openid-configuration \(404\)\]/,
      /publish/,
    ],
    [
      'a token endpoint without https',
      ({ as }) => Object.assign(as.settings, { metadata: { token_endpoint: 'http://as.example/token' } }),
      'issuer',
      /token_endpoint/,
      /https/,
    ],
    [
      'an issuer that is not there',
      ({ rs }) => Object.assign(rs.settings, { metadata: { authorization_servers: ['http://127.0.0.1:1'] } }),
      'issuer',
      /127\.0\.0\.1:1/,
      /\w{3}/,
    ],
    [
      'no way for this client to authenticate',
      ({ as }) => Object.assign(as.settings, { tokenEndpointAuthMethods: ['tls_client_auth'] }),
      'authentication',
      /only tls_client_auth/,
      /clientAuthentication/,
    ],
  ] as ReadonlyArray<readonly [string, (fake: FakeServers) => unknown, string, RegExp, RegExp]>) {
    it(`finds ${what}, and names the option or config key to change`, async () => {
      const fake = await startFakeServers()
      make(fake)
      const found = wrongs(await examineAsClient(fake.serverUrl))
      expect(found.map(finding => finding.check)).to.deep.equal([`client: ${check}`])
      expect(found[0]?.text).to.match(words)
      expect(found[0]?.fix).to.match(fix)
    })
  }

  for (const [what, make, check, words] of [
    [
      'no registration',
      ({ as }) => Object.assign(as.settings, { registration: 'off' }),
      'registration',
      /automatic registration/,
    ],
    [
      'no public clients',
      ({ as }) => Object.assign(as.settings, { tokenEndpointAuthMethods: ['client_secret_basic'] }),
      'authentication',
      /no public clients/,
    ],
    [
      'no iss in responses',
      ({ as }) => Object.assign(as.settings, { issAdvertised: undefined }),
      'response',
      /do not name their issuer/,
    ],
    [
      'no refresh tokens',
      ({ as }) => Object.assign(as.settings, { metadata: { grant_types_supported: ['authorization_code'] } }),
      'renewal',
      /log in again/,
    ],
    [
      'several authorization servers',
      ({ rs, servers }) => Object.assign(rs.settings, { authorizationServers: servers }),
      'issuer',
      /2 authorization servers are listed/,
    ],
    ['no challenge', ({ rs }) => Object.assign(rs.settings, { challenges: [] }), 'challenge', /have to guess/],
    ['no scopes', () => undefined, 'scopes', /requests none/],
    [
      'no metadata at all',
      ({ rs }) => {
        rs.settings.challenges = []
        rs.settings.wellKnown = []
      },
      'resource',
      /no resource metadata \[looked at \S+\/mcp \(404\), \S+oauth-protected-resource \(404\)\]/,
    ],
  ] as ReadonlyArray<readonly [string, (fake: FakeServers) => unknown, string, RegExp]>) {
    it(`notes ${what}`, async () => {
      const fake = await startFakeServers({ authorizationServers: 2 })
      make(fake)
      const findings = await examineAsClient(fake.serverUrl)
      const found = findings
        .filter(({ level }) => level === 'note')
        .find(finding => finding.check === `client: ${check}`)
      expect(found?.text).to.match(words)
    })
  }

  it('continues after a metadata document of another issuer, as the client does', async () => {
    const fake = await startFakeServers({ issuerPath: '/tenant' })
    fake.as.settings.wellKnown = ['oidc-append']
    const { url, issuer } = fake.as
    const first = `${url}/.well-known/oauth-authorization-server/tenant`
    fake.as.failNext(new URL(first).pathname, { status: 200, body: { issuer: 'https://other.example' } }, 10)
    fake.as.settings.metadata = { jwks_uri: `${url}/jwks` }
    fake.as.failNext('/jwks', { status: 200, body: { keys: [{}] } })
    const findings = await examine(fake.serverUrl)
    const found = findings.filter(({ check, level }) => check === 'identity provider' && level !== 'ok')
    expect(found.map(({ text }) => text)).to.deep.equal([
      `${first} is not the metadata of ${issuer}; clients that use it cannot log in`,
    ])
  })

  it('reports nothing about login for an open server or one that does not respond', async () => {
    const { url } = await startHost({ toolsets: { all: [] }, routes: { '/': { toolsets: 'all' } } })
    expect(await examineAsClient(url)).to.deep.equal([])
    expect(await examineAsClient('http://127.0.0.1:1/')).to.deep.equal([])
  })

  it('supports servers of older protocol versions', async () => {
    const [streamable] = await examine(sdk.streamable)
    expect(streamable).to.deep.include({ check: 'address', level: 'note' })
    expect(streamable?.text).to.equal(`${sdk.streamable} supports Streamable HTTP of 2025-11-25, not 2026-07-28`)
    const [sse] = await examine(sdk.sse)
    expect(sse?.text).to.equal(`${sdk.sse} supports HTTP+SSE of 2024-11-05, not 2026-07-28`)
  })

  it('prints both sides, and exits 1 if there is a problem', async () => {
    const fake = await startFakeServers()
    fake.as.settings.codeChallengeMethods = ['plain']
    const { code, stdout, stderr } = await runCli(['doctor', fake.serverUrl], await makeFolder({}))
    expect([code, stderr]).to.deep.equal([1, ''])
    expect(stdout).to.match(/^ok +address +/m)
    expect(stdout).to.match(/^WRONG +client: issuer +\S+.*\S+.*PKCE [\s\S]*fix: .*assumePkceS256/m)
  })
})
