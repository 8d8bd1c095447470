// Tests the data of the screens Sessions and Tasks while the store does not respond.
import { expect } from 'chai'
import { defineTool, HostError } from '../../../core/index.ts'
import { createMemoryBus, createMemoryStore } from '../../../core/store.ts'
import { PATHS } from '../../../plugins/console/api.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { startConsole } from './console-client.ts'

describe('The console during a store outage', () => {
  after(stopHosts)

  it('reports sessions and tasks as unavailable, and lists them after the outage', async () => {
    let isDown = false
    const store = createMemoryStore()
    const check = async <Result>(access: () => Promise<Result>): Promise<Result> => {
      if (isDown) throw new HostError('unavailable')
      return access()
    }
    const stored = plugin(
      host =>
        host.provide('store', {
          ...store,
          shared: 'host',
          bus: createMemoryBus(host.config.node),
          read: (...args) => check(async () => store.read(...args)),
          transact: (...args) => check(async () => store.transact(...args)),
        }),
      { provides: ['store'] },
    )
    const operator = await startConsole({
      toolsets: { all: [defineTool({ name: 'say', task: 'optional', handler: () => 'said' })] },
      routes: { '/open': { toolsets: 'all' } },
      plugins: { stored, tasks: {} },
    })
    await openSession(`${operator.url}/open`)
    const read = async () => {
      const { body: sessions } = await operator.get(PATHS.sessions)
      const { body: tasks } = await operator.get(PATHS.tasks)
      return { sessions, tasks }
    }
    const before = await read()
    expect([before.sessions.total, before.tasks.available]).to.deep.equal([1, true])
    isDown = true
    for (const body of Object.values(await read())) {
      expect(body).to.include({ available: false, reason: 'The store does not respond.' })
      expect(body).not.to.have.any.keys('sessions', 'tasks', 'total')
    }
    isDown = false
    const { sessions, tasks } = await read()
    expect([sessions.total, tasks.available]).to.deep.equal([1, true])
  })
})
