// The config key `store`: the plugin of a database, for the whole config or for one route.
import { expect } from 'chai'
import { createHost, type Host } from '../../core/embed.ts'
import { type Config, defineTool } from '../../core/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { createTestLog } from '../support/start-host.ts'

const hosts: Host[] = []

async function inspect(changes: Partial<Config>) {
  const config: Config = {
    server: { name: 'a', version: '1' },
    toolsets: { all: [defineTool({ name: 'hello', handler: () => 'hello' })] },
    secrets: ['a secret for tests, long enough to be one'],
    routes: { '/': { toolsets: 'all' }, '/other': { toolsets: 'all' } },
    ...changes,
  }
  const host = await createHost(config, { log: createTestLog(), purpose: 'inspect' })
  hosts.push(host)
  const { served } = host
  return Object.fromEntries(served.routes.map(route => [route.path, served.provides.by('sessionStore', route)]))
}

const refusal = async (changes: Partial<Config>) => String(await rejectionOf(inspect(changes)))

const redis = { url: 'redis://127.0.0.1:1' }

describe('The config key `store`', () => {
  after(() => Promise.all(hosts.splice(0).map(host => host.close())))

  it('enables the plugin of a database with its options', async () => {
    expect(await inspect({ store: { redis } })).to.deep.equal({ '/': ['cluster-redis'], '/other': ['cluster-redis'] })
    expect(await inspect({ store: 'memory' })).to.deep.equal({ '/': [], '/other': [] })
  })

  it('gives a route another store, or the store in memory', async () => {
    const routes = { '/': { toolsets: 'all' }, '/other': { toolsets: 'all', store: 'memory' as const } }
    expect(await inspect({ store: { redis }, routes })).to.deep.equal({ '/': ['cluster-redis'], '/other': [] })
    const own = { '/': { toolsets: 'all' }, '/other': { toolsets: 'all', store: { redis } } }
    expect(await inspect({ routes: own })).to.deep.equal({ '/': [], '/other': ['cluster-redis'] })
  })

  it('locates errors in the options of a store', async () => {
    const given = refusal({ store: { redis: { url: 'http://127.0.0.1' } } })
    expect(await given).to.include('store.redis.url')
    const unknown = { reddis: redis } as unknown as Config['store']
    expect(await refusal({ store: unknown as 'memory' })).to.match(/store.*reddis/s)
    expect(await refusal({ store: { redis: { ...redis, ttl: 1_000, cluster: [redis.url] } } })).to.include(
      'store.redis',
    )
    expect(await refusal({ store: { redis: { ...redis, ttl: '100ms' } } })).to.include('store.redis.ttl')
  })

  it('refuses options under the name of the plugin as well', async () => {
    const both = await refusal({ store: { redis }, plugins: { 'cluster-redis': redis } })
    expect(both).to.include("`store.redis` and plugins['cluster-redis'] set the same options")
  })
})
