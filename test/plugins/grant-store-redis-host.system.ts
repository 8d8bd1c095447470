// The grant-store-redis plugin in hosts: service slots, cluster-redis and required secrets.

import { expect } from 'chai'
import type { Config } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { StartError } from '../../core/plugin.ts'
import type { GrantStore } from '../../plugins/families/grant-store/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const MINUTE = 60_000

let redis: RedisServer
before(function () {
  needsRedis(this)
})
beforeEach(async () => {
  redis = await startRedis()
})
afterEach(stopHostsAndRedis)

/** A host with these plugins, and the grant stores of its routes. */
async function start(plugins: Config['plugins'], config: Partial<Config> = {}) {
  const stores = new Map<string, GrantStore>()
  const look = definePlugin({
    setup(host) {
      host.onReady(() => {
        const services = host.services
        for (const route of host.routes) stores.set(route.path, services.slot('grantStore', route))
      })
    },
  })
  const { log } = await startHost({
    redis: { url: redis.url },
    toolsets: { none: [] },
    routes: { '/': { toolsets: 'none' } },
    ...config,
    plugins: { 'transport-streamable': {}, ...plugins, look: look() },
  })
  return { store: stores.get('/') as GrantStore, stores, log }
}

describe('grant-store-redis in a host', () => {
  for (const name of ['grant-store-redis', 'cluster-redis']) {
    it(`shares grants between two hosts with ${name}, and a third that starts later`, async () => {
      const [one, two] = [await start({ [name]: {} }), await start({ [name]: {} })]
      await one.store.set('granted:one', 'x', MINUTE)
      await one.store.set('pending:one', 'y', MINUTE)
      expect(two.store.shared).to.equal(true)
      expect(await two.store.take('pending:one')).to.equal('y')
      await stopHosts()
      const three = await start({ [name]: {} })
      expect(await three.store.get('granted:one')).to.equal('x')
      expect(await three.store.take('pending:one')).to.equal(undefined)
    })
  }

  it('applies only to its routes, and other routes use the in-memory store', async () => {
    const { stores } = await start(
      { 'grant-store-redis': {} },
      {
        routes: {
          '/': { toolsets: 'none' },
          '/off': { toolsets: 'none', plugins: { 'grant-store-redis': false } },
        },
      },
    )
    const shared = ['/', '/off'].map(path => stores.get(path)?.shared)
    expect(shared).to.deep.equal([true, false])
  })

  it('fails startup together with cluster-redis', async () => {
    const error = await rejectionOf(start({ 'cluster-redis': {}, 'grant-store-redis': {} }))
    expect(String(error)).to.match(/grantStore/)
  })

  it('fails startup without secrets, with one message, in cluster-redis too', async () => {
    for (const name of ['grant-store-redis', 'cluster-redis']) {
      const error = await rejectionOf(start({ [name]: {} }, { secrets: undefined } as never))
      expect(String(error)).to.include('MCP_HOST_SECRETS')
      expect(String(error).match(/openssl rand/g)).to.have.length(1)
    }
    const error = await rejectionOf(start({ 'grant-store-redis': {} }, { secrets: undefined } as never))
    expect(String(error)).to.include(
      'grants are for every node, but the keys that seal them are temporary keys of this process',
    )
  })

  it('fails startup if another host uses different secrets', async () => {
    await start({ 'grant-store-redis': {} }, { secrets: ['a secret of one deployment, and long'] })
    const error = await rejectionOf(
      start({ 'grant-store-redis': {} }, { secrets: ['a secret of another deployment, and long'] }),
    )
    expect(error).to.be.instanceOf(StartError)
    expect(String(error)).to.include('the keys mcp-host:* of redis://').and.include('redis.keyPrefix')
  })
})
