// The slot `store` of plugins: sessions, streams, logins and tasks are kept in the store of the route.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { definePlugin } from '../../core/plugin.ts'
import { createMemoryBus, createMemoryStore, type Store } from '../../core/store.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const OPTIONS = { type: 'object', additionalProperties: false, properties: {} } as const

/** Counts the transactions of each partition. */
function countedStore() {
  const store = createMemoryStore()
  const partitions = new Map<string, number>()
  const counted: Store = {
    shared: 'host',
    read: store.read,
    transact(partition, steps) {
      partitions.set(partition, (partitions.get(partition) ?? 0) + 1)
      return store.transact(partition, steps)
    },
  }
  return { store: counted, partitions }
}

const pluginOf = (store: Store) =>
  definePlugin({
    options: OPTIONS,
    provides: ['store'],
    setup(host) {
      host.provide('store', { ...store, bus: createMemoryBus(host.config.node) })
    },
  })()

const routed = {
  toolsets: { all: [defineTool({ name: 'hello', handler: () => 'hello' })] },
  routes: { '/': { toolsets: 'all' }, '/other': { toolsets: 'all', plugins: { mine: false as const } } },
}

describe('The slot `store`', () => {
  after(stopHosts)

  it('keeps sessions in the store of a plugin, on its routes', async () => {
    const { store, partitions } = countedStore()
    const { url } = await startHost({ ...routed, plugins: { 'transport-streamable': {}, mine: pluginOf(store) } })
    const session = await openSession(`${url}/`)
    const opened = partitions.size
    expect(opened).to.be.above(0)
    expect((await session.request('tools/call', { name: 'hello' })).status).to.equal(200)
    await session.end()
    expect([...partitions.values()].reduce((sum, count) => sum + count, 0)).to.be.above(opened)
    const { size } = partitions
    await openSession(`${url}/other`)
    expect(partitions.size).to.equal(size)
  })

  it('refuses an incomplete store, and two stores for one route', async () => {
    const incomplete = pluginOf({ ...createMemoryStore(), transact: undefined } as unknown as Store)
    const refused = rejectionOf(startHost({ ...routed, plugins: { mine: incomplete } }))
    expect(String(await refused)).to.include('without the methods transact')
    const { store } = countedStore()
    const two = { mine: pluginOf(store), other: pluginOf(store) }
    expect(String(await rejectionOf(startHost({ ...routed, plugins: two })))).to.match(
      /mine already provides the store/,
    )
  })
})
