// Tests DPoP-bound tokens (RFC 9449) end to end: own and official client, oidc-provider, nonces, and two nodes that
// share Redis.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { createDPoPSigner } from '../../client/dpop.ts'
import {
  type AuthFetch,
  type ClientOAuthOptions,
  createAuthFetch,
  createMemoryTokenCache,
  type TokenCache,
  type TokenContainer,
} from '../../client/index.ts'
import type { Config } from '../../core/index.ts'
import { type LoginServer, startLoginServer, stopLoginServers } from '../client/e2e/login-server.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import {
  type AuthorizationServer,
  CLIENT,
  SERVER,
  startAuthorizationServer,
  stopAuthorizationServers,
} from '../support/authorization-server.ts'
import { freePort } from '../support/free-port.ts'
import { callWith, challengeHeader, type ProtectedHost, startProtected } from '../support/protected-host.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { startTcpBalancer, type TcpBalancer } from '../support/tcp-balancer.ts'
import { makeKey } from '../support/test-issuer.ts'

interface Seen {
  readonly method: string
  readonly authorization: string
  readonly proof: string
  readonly status: number
  readonly nonce: string | null
}

/** A client that keeps what it sent to the server with a token, and its one container. */
function startClient(serverUrl: string, options: Partial<ClientOAuthOptions>) {
  const seen: Seen[] = []
  let kept: TokenContainer | undefined
  const tokenCache: TokenCache = {
    ...createMemoryTokenCache(),
    getTokens: () => kept,
    storeTokens: container => {
      kept = container
    },
  }
  const watched: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    const request = new Request(input, { ...init, body: null })
    const [authorization, proof] = ['authorization', 'dpop'].map(name => request.headers.get(name) ?? '')
    const { status } = response
    const isOurs = request.url.startsWith(serverUrl) && authorization !== '' && authorization !== undefined
    const nonce = response.headers.get('dpop-nonce')
    if (isOurs) seen.push({ method: request.method, authorization, proof: proof ?? '', status, nonce })
    return response
  }
  const authFetch = createAuthFetch({
    serverUrl,
    redirectUri: 'http://127.0.0.1:9/callback',
    interactive: 'never',
    tokenCache,
    fetch: watched,
    ...options,
  })
  return { authFetch, seen, container: () => kept as TokenContainer }
}

/** The official client, of each way to speak, over our fetch. */
async function connect(url: string, authFetch: AuthFetch, mode: 'auto' | 'legacy') {
  const client = new Client({ name: 'official', version: '1.0.0' }, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: authFetch })
  await client.connect(transport)
  const whoami = async () => (await client.callTool({ name: 'whoami' })).structuredContent as { user: object }
  const close = async () => {
    if (transport.sessionId !== undefined) await transport.terminateSession()
    await client.close()
  }
  return { whoami, close }
}

const claimsIn = (proof: string) => JSON.parse(Buffer.from(proof.split('.')[1] ?? '', 'base64url').toString())

describe('DPoP with opaque tokens of oidc-provider', () => {
  let authority: LoginServer
  let host: ProtectedHost
  beforeEach(async () => {
    authority = await startLoginServer()
    const dpop = { mode: 'required', nonce: true } as const
    const { introspection: endpoint } = authority
    host = await startProtected({
      'auth-introspection': { endpoint, clientId: SERVER.id, clientSecret: SERVER.secret, dpop },
      'resource-metadata': { authorizationServers: [authority.url] },
    })
  })
  afterEach(async () => {
    await stopHostsAndRedis()
    await stopLoginServers()
  })

  for (const mode of ['auto', 'legacy'] as const) {
    it(`discovers, signs in and sends a proof with each request until the session ends (${mode})`, async () => {
      const { delegate } = authority
      const { authFetch, seen } = startClient(host.writers, {
        interactive: 'post',
        authorizationRedirectDelegate: delegate,
        scopes: ['read', 'write'],
      })
      const client = await connect(host.writers, authFetch, mode)
      for (let calls = 0; calls < 3; calls++) expect((await client.whoami()).user).to.include({ subject: 'ann' })
      await client.close()
      const proofs = seen.map(({ proof }) => proof)
      const refused = seen.filter(({ status }) => status === 401)
      expect(seen.every(({ authorization }) => authorization.startsWith('DPoP '))).to.equal(true)
      expect(new Set(proofs).size).to.equal(seen.length)
      expect(seen.slice(1).every(({ proof }) => typeof claimsIn(proof).nonce === 'string')).to.equal(true)
      // The first of them alone: it could not know a nonce.
      expect(refused).to.have.length(1)
      expect(refused[0]?.nonce).to.be.a('string')
    })
  }

  it('rejects the same token as a bearer token and without a proof', async () => {
    const { delegate } = authority
    const { authFetch } = startClient(host.guarded, {
      interactive: 'post',
      authorizationRedirectDelegate: delegate,
      scopes: ['read'],
    })
    const client = await connect(host.guarded, authFetch, 'auto')
    const token = await authFetch.session.token()
    for (const scheme of ['Bearer', 'DPoP']) {
      const answer = await callWith(host.guarded, { Authorization: `${scheme} ${token}` })
      expect(answer.status).to.equal(401)
      expect(challengeHeader(answer)).to.match(/^DPoP error=.*resource_metadata=.*algs="ES256 /)
    }
    await client.close()
  })
})

describe('DPoP with JWTs of oidc-provider on two nodes that share Redis', () => {
  let redis: RedisServer
  let balancer: TcpBalancer
  let authority: AuthorizationServer
  let nodes: ProtectedHost[]
  let ports: number[]
  const NONCE = { mode: 'required', nonce: true } as const

  before(function () {
    needsRedis(this)
  })
  beforeEach(async () => {
    redis = await startRedis()
    authority = await startAuthorizationServer([makeKey('a')])
    ports = [await freePort(), await freePort()]
    balancer = await startTcpBalancer(ports)
    const plugins: NonNullable<Config['plugins']> = {
      'auth-jwt': { authority: authority.url, dpop: NONCE },
      'resource-metadata': { authorizationServers: [authority.url] },
      'cluster-redis': {},
    }
    const node = (port: number) =>
      startProtected(plugins, { redis: { url: redis.url }, http: { port, publicUrl: balancer.url } })
    nodes = await Promise.all(ports.map(node))
  })
  afterEach(async () => {
    await balancer.stop()
    await stopHostsAndRedis()
    await stopAuthorizationServers()
  })

  const clientAt = (path: string) =>
    startClient(`${balancer.url}${path}`, {
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      clientIssuer: authority.url,
      grant: { type: 'client_credentials' },
      scopes: ['read', 'write'],
    })

  /** Sends each with its own proof by the nonce that the host wants, past the balancer. */
  async function signerOf(path: string) {
    const { authFetch, container, seen } = clientAt(path)
    const client = await connect(`${balancer.url}${path}`, authFetch, 'auto')
    await client.whoami()
    await client.close()
    const { accessToken = '', dpopJwk } = container()
    const signer = await createDPoPSigner(dpopJwk)
    const nonce = seen.flatMap(one => one.nonce ?? []).at(-1)
    if (nonce !== undefined) signer.rememberNonce(new URL(balancer.url).origin, nonce)
    const proof = () => signer.proof('POST', `${balancer.url}${path}`, accessToken)
    const sendTo = (index: number, one: string) =>
      callWith(`http://127.0.0.1:${ports[index]}${path}`, { Authorization: `DPoP ${accessToken}`, DPoP: one })
    return { proof, sendTo }
  }

  for (const mode of ['auto', 'legacy'] as const) {
    it(`serves one client at both nodes with a shared nonce (${mode})`, async () => {
      const { authFetch, seen } = clientAt('/writers')
      const client = await connect(`${balancer.url}/writers`, authFetch, mode)
      for (let calls = 0; calls < 6; calls++) expect((await client.whoami()).user).to.include({ subject: CLIENT.id })
      await client.close()
      expect(seen.filter(({ status }) => status === 401)).to.have.length(1)
      expect(seen.every(({ authorization }) => authorization.startsWith('DPoP '))).to.equal(true)
    })
  }

  it('accepts a proof once in concurrent attempts at both nodes', async () => {
    const { proof, sendTo } = await signerOf('/guarded')
    const rounds: number[] = []
    for (let round = 0; round < 11; round++) {
      const one = await proof()
      const attempts = round === 0 ? 200 : 10
      const answers = await Promise.all(Array.from({ length: attempts }, (_, index) => sendTo(index % 2, one)))
      const passed = answers.filter(({ status }) => status === 200).length
      const replayed = answers.filter(answer => /was used before/.test(challengeHeader(answer) ?? '')).length
      expect(passed + replayed, JSON.stringify(answers.map(({ status }) => status))).to.equal(attempts)
      rounds.push(passed)
    }
    expect(rounds.every(passed => passed === 1)).to.equal(true)
  })

  it('rejects proofs with 503 while Redis is unavailable and accepts new ones after it returns', async () => {
    const { proof, sendTo } = await signerOf('/guarded')
    redis.pause()
    const answers = await Promise.all([0, 1].map(async index => sendTo(index, await proof())))
    redis.resume()
    for (const { status, headers } of answers) {
      expect(status).to.equal(503)
      expect(headers.get('retry-after')).to.match(/^\d+$/)
    }
    expect(nodes[0]?.log.some(({ message }) => /store of used proofs/.test(message ?? ''))).to.equal(true)
    for (const index of [0, 1]) {
      let status = 0
      for (let tries = 0; tries < 20 && status !== 200; tries++) ({ status } = await sendTo(index, await proof()))
      expect(status).to.equal(200)
    }
  })

  it('startup fails when nodes share sessions but not the used proofs', async () => {
    const plugins: NonNullable<Config['plugins']> = {
      'auth-jwt': { authority: authority.url, dpop: { mode: 'optional' } },
      'session-store-redis': {},
      'change-bus-redis': {},
      'event-store-redis': {},
    }
    const start = (more: NonNullable<Config['plugins']>) =>
      startProtected({ ...plugins, ...more }, { redis: { url: redis.url } })
    const error = await rejectionOf(start({}))
    expect(String(error)).to.match(/auth-jwt'\]\.dpop/)
    await start({ 'grant-store-redis': {} })
    await start({ 'auth-jwt': { authority: authority.url } })
  })
})
