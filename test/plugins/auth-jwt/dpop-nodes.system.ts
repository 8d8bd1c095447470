// Tests DPoP with several nodes: replay protection needs a shared store, and expired proofs leave it.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { boundTo, provenBy } from '../../support/dpop.ts'
import { callWith, challengeHeader } from '../../support/protected-host.ts'
import { stopHostsAndRedis } from '../../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../../support/redis-server.ts'
import { startHost, type TestConfig } from '../../support/start-host.ts'
import { makeKey, toJwk } from '../../support/test-issuer.ts'
import { ISSUER, issuerKey, key, tokenFor } from './bound-tokens.ts'

const PUBLIC = 'https://mcp.test'
const pay = defineTool({ name: 'whoami', task: 'optional', handler: () => 'paid' })

let redis: RedisServer
before(async function () {
  needsRedis(this)
  redis = await startRedis()
})
after(stopHostsAndRedis)

type Plugins = NonNullable<TestConfig['plugins']>

const config = (plugins: Plugins, mode?: 'optional' | 'required'): TestConfig => ({
  toolsets: { all: [pay] },
  routes: { '/guarded': { toolsets: 'all', authorize: true, stateless: true } },
  http: { publicUrl: PUBLIC, allowedHosts: ['127.0.0.1'] },
  redis: { url: redis.url },
  plugins: {
    'transport-streamable': {},
    'auth-jwt': { issuer: ISSUER, keys: [toJwk(issuerKey)], audience: PUBLIC, ...(mode && { dpop: { mode } }) },
    ...plugins,
  },
})

/** What hosts share with others, by what the error calls it. */
const SHARED: ReadonlyArray<readonly [what: string, name: string, plugins: Plugins]> = [
  ['tasks', 'task-store-redis', { 'task-store-redis': {}, tasks: {} }],
  ['tasks', 'a front', { 'task-store-redis': {}, tasks: { role: 'front' } }],
  ['tasks', 'a worker', { 'task-store-redis': {}, tasks: { role: 'worker' } }],
  ['changes', 'change-bus-redis', { 'change-bus-redis': {}, tasks: {} }],
  ['events of streams', 'event-store-redis', { 'event-store-redis': {}, tasks: {} }],
]

describe('DPoP with shared state but no shared proof store', () => {
  it('fails startup for every kind of shared state', async () => {
    for (const [what, , plugins] of SHARED) {
      for (const mode of ['optional', 'required'] as const) {
        const words = `each node that shares the ${what} would accept a DPoP proof that another process has seen`
        await expectStopped(config(plugins, mode), words)
      }
    }
  })

  it('rejects bound tokens if dpop is not set', async () => {
    const { url } = await startHost(config({ 'task-store-redis': {}, tasks: {} }))
    const headers = provenBy({ key, token: tokenFor(PUBLIC), url: `${PUBLIC}/guarded` })
    const answer = await callWith(`${url}/guarded`, headers)
    expect(answer.status).to.equal(401)
  })

  it('starts with a shared proof store, and one of two nodes accepts a proof', async () => {
    const shared = config({ 'task-store-redis': {}, 'grant-store-redis': {}, tasks: { role: 'front' } }, 'required')
    const nodes = [await startHost(shared), await startHost(shared)]
    let [taken, replayed] = [0, 0]
    for (let round = 0; round < 20; round++) {
      const headers = provenBy({ key, token: tokenFor(PUBLIC), url: `${PUBLIC}/guarded` })
      const answers = await Promise.all(nodes.map(({ url }) => callWith(`${url}/guarded`, headers)))
      taken += answers.filter(({ status }) => status !== 401).length
      replayed += answers.filter(answer => /was used before/.test(challengeHeader(answer) ?? '')).length
    }
    expect([taken, replayed]).to.deep.equal([20, 20])
  })
})

describe('DPoP proofs in a shared store', () => {
  it('are accepted if made before startup, and expire soon after their lifetime', async () => {
    const { url } = await startHost(config({ 'grant-store-redis': {}, tasks: {} }, 'required'))
    const one = makeKey('another')
    for (const ahead of [-50, 0, 4]) {
      const claims = { iat: Math.floor(Date.now() / 1_000) + ahead }
      const token = tokenFor(PUBLIC, boundTo(one))
      const headers = provenBy({ key: one, token, url: `${PUBLIC}/guarded`, claims })
      expect((await callWith(`${url}/guarded`, headers)).status).to.equal(200)
    }
    const kept = redis.cli('--scan').filter(name => name.includes('dpop:'))
    const longest = Math.max(...kept.map(name => Number(redis.cli('pttl', name)[0])))
    expect(longest).to.be.within(60_000, 75_000)
  })
})
