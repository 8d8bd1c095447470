// Tests the store contracts with the built-in stores, and that they detect stores that violate them.

import { expect } from 'chai'
import type { ChangeBus } from '../../core/mcp/definitions/change-bus.ts'
import { createSessionStore } from '../../core/sessions/create-session-store.ts'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { createEventStore } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore } from '../../core/sessions/memory-event-store.ts'
import { createMemoryBus } from '../../core/store/memory-bus.ts'
import { createMemoryStore } from '../../core/store/memory-store.ts'
import type { Store } from '../../core/store/store.ts'
import type { Check } from '../../core/testing/contract.ts'
import { createTestLog } from '../../core/testing/test-log.ts'
import { storeContract } from '../../core/testing.ts'
import type { Peers, SessionStore, Victim } from '../../core/transport.ts'
import type { GrantStore } from '../../plugins/families/grant-store/index.ts'
import { createMemoryGrantStore } from '../../plugins/families/grant-store/index.ts'
import type { TaskStore } from '../../plugins/families/task-store/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { createMemoryTaskStore } from '../plugins/tasks/support/memory-task-store.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { serviceContract } from '../support/contracts/index.ts'
import { describeContracts } from '../support/describe-contracts.ts'
import { createMemoryChangeBus, createMemoryPeers } from '../support/memory-services.ts'
import { compareWithModel } from '../support/store-model.ts'

/** Most tests of this file wait for an expiry: all of them run at the same time. */
const together = concurrentIt()

/** One node, and what it has is of this process. */
const inMemory = <Service>(create: () => Service) => ({ shared: false, open: () => ({ nodes: [create()] }) })

const STREAM_BOUNDS = { ttl: 60_000, maxEvents: 10_000, maxBytes: 4_194_304 }

/** The stores of several nodes above one `Store`. */
const aboveStore = <Service>(create: (store: Store, node: string) => Service) => ({
  shared: true,
  open(count: number) {
    const store: Store = { ...createMemoryStore(), shared: true }
    return { nodes: Array.from({ length: count }, (_, index) => create(store, `node${index}`)) }
  },
})

const contracts = {
  'the session store above a store': serviceContract(
    'sessionStore',
    aboveStore((store, node) => createSessionStore(store, { node, log: createTestLog() })),
  ),
  'the event store above a store': serviceContract(
    'eventStore',
    aboveStore(store => createEventStore(store, STREAM_BOUNDS)),
  ),
  'the store in memory': storeContract(
    'store',
    inMemory(() => createMemoryStore()),
  ),
  'the bus in memory': storeContract(
    'bus',
    inMemory(() => createMemoryBus('here')),
  ),
  'the event store in memory': serviceContract('eventStore', inMemory(createMemoryEventStore)),
  'the grant store in memory': serviceContract('grantStore', inMemory(createMemoryGrantStore)),
  'the task store in memory': serviceContract('taskStore', inMemory(createMemoryTaskStore)),
  'the change bus in memory': serviceContract('changeBus', inMemory(createMemoryChangeBus)),
  'the peers of a node without others': serviceContract(
    'peers',
    inMemory(() => createMemoryPeers('here')),
  ),
}

describeContracts(contracts, { register: together })

describe('Store in memory', () => {
  it('gives the results of the model for random transactions', () => compareWithModel(createMemoryStore(), 100))
})

/** The names of the checks that fail. */
async function failing(checks: readonly Check[]): Promise<string[]> {
  const failed = await Promise.all(
    checks.map(({ name, run }) =>
      run().then(
        () => [],
        () => [name],
      ),
    ),
  )
  return failed.flat()
}

const createOneStore = () =>
  createSessionStore({ ...createMemoryStore(), shared: 'host' }, { node: 'here', log: createTestLog() })

/** A session store that keeps the later of the last use that it saw and of the one that it is told. */
function createLaterStore(): SessionStore {
  const store = createOneStore()
  const inner = {
    create: store.create.bind(store),
    enter: store.enter.bind(store),
    mark: store.mark.bind(store),
    end: store.end.bind(store),
  }
  const seen = new Map<string, number>()
  const idle = new Map<string, string>()
  const touch = (digest: string) => seen.set(digest, performance.now())
  return Object.assign(store, {
    create(...given: Parameters<SessionStore['create']>) {
      touch(given[0])
      return inner.create(...given)
    },
    enter(...given: Parameters<SessionStore['enter']>) {
      touch(given[0])
      return inner.enter(...given)
    },
    async mark(...[uses, bounds]: Parameters<SessionStore['mark']>) {
      const now = performance.now()
      for (const { digest, holder, inUse, ago } of uses.filter(({ digest }) => seen.has(digest))) {
        seen.set(digest, Math.max(seen.get(digest) ?? 0, now - ago))
        if (inUse) idle.delete(digest)
        else idle.set(digest, holder)
      }
      await inner.mark(uses, { ...bounds, maxIdle: Number.MAX_SAFE_INTEGER })
      const longest = [...idle.keys()].sort((a, b) => (seen.get(a) ?? 0) - (seen.get(b) ?? 0))
      const countOf = (holder: string | undefined) => [...idle.values()].filter(other => other === holder).length
      const victims: Victim[] = []
      while (idle.size > bounds.maxIdle) {
        const most = Math.max(...[...idle.values()].map(countOf))
        const digest = longest.find(one => idle.has(one) && countOf(idle.get(one)) === most) as string
        victims.push({ digest, holder: idle.get(digest) as string })
        idle.delete(digest)
      }
      return victims
    },
    end(...given: Parameters<SessionStore['end']>) {
      idle.delete(given[0])
      return inner.end(...given)
    },
  })
}

describe('Store contracts', () => {
  together('accept a session store with its own last-used times', async () => {
    expect(await failing(serviceContract('sessionStore', inMemory(createLaterStore)))).to.deep.equal([])
  })

  together('describe the expected store behaviour in the error', async () => {
    const [first] = serviceContract(
      'sessionStore',
      inMemory(() => Object.assign(createOneStore(), { create: async () => undefined })),
    )
    const thrown = await rejectionOf(first?.run() ?? Promise.resolve())
    expect(String(thrown)).to.include('create keeps a session: expected true, found false')
  })

  together('detect a session store that forgets running requests', async () => {
    const forgetful = (): SessionStore => {
      const store = createOneStore()
      const enter = store.enter.bind(store)
      store.enter = (digest, visit, bounds) => enter(digest, { ...visit, requests: [] }, bounds)
      return store
    }
    expect(await failing(serviceContract('sessionStore', inMemory(forgetful)))).to.include(
      'rejects a second request with the id of a running request',
    )
  })

  together('detect an event store with its own numbering', async () => {
    const own = (): EventStore => {
      const store = createMemoryEventStore()
      return { ...store, append: (session, stream, message) => store.append(session, stream, message, 0) }
    }
    expect(await failing(serviceContract('eventStore', inMemory(own)))).to.deep.equal([
      'continues a lost stream after the last number its writer knows and reports the gap before it',
    ])
  })

  together('detect a grant store that reads and deletes non-atomically', async () => {
    const hasty = (): GrantStore => {
      const store = createMemoryGrantStore()
      return {
        ...store,
        async take(key) {
          const value = await store.get(key)
          await store.delete(key)
          return value
        },
      }
    }
    expect(await failing(serviceContract('grantStore', inMemory(hasty)))).to.deep.equal([
      'separates a set from the text stored under the same key',
      'lets one of many concurrent take, add, replace or join calls succeed',
    ])
  })

  together('detect a task store that forgets fencing tokens or running task counts', async () => {
    const failsAt = async (create: () => TaskStore, name: string) => {
      const check = serviceContract('taskStore', inMemory(create)).find(one => one.name === name)
      return String(await rejectionOf(check?.run() ?? Promise.resolve()))
    }
    const unfenced = (): TaskStore => {
      const store = createMemoryTaskStore()
      const end: TaskStore['end'] = async (lease, ...rest) =>
        store.end({ ...lease, fence: (await store.get(lease.id))?.fence ?? 0 }, ...rest)
      return { ...store, end }
    }
    expect(await failsAt(unfenced, 'gives a task with an expired lease to one other claim')).to.include(
      'end does nothing for a fence',
    )
    const greedy = (): TaskStore => {
      const store = createMemoryTaskStore()
      const claim: TaskStore['claim'] = (offers, lease) =>
        store.claim(
          offers.map(offer => ({ ...offer, running: 99, runningPerHolder: 99 })),
          lease,
        )
      return { ...store, claim }
    }
    const name = 'enforces the concurrency limits per queue and per owner'
    expect(await failsAt(greedy, name)).to.include('no more run than `running`')
  })

  together('detect a change bus that reorders changes', async () => {
    const hasty = (): ChangeBus => {
      const bus = createMemoryChangeBus()
      let count = 0
      return {
        ...bus,
        publish: change => new Promise(resolve => setTimeout(() => resolve(bus.publish(change)), 20 - (count++ % 20))),
      }
    }
    expect(await failing(serviceContract('changeBus', inMemory(hasty)))).to.include(
      'notifies every listener of every change once, in publishing order',
    )
  })

  together('detect peers that keep messages for unknown nodes', async () => {
    const trusting = (): Peers => ({ ...createMemoryPeers('here'), send: async () => true })
    expect(await failing(serviceContract('peers', inMemory(trusting)))).to.deep.equal([
      'stores no messages for an unknown node',
    ])
  })

  together('retry with a longer lifetime for a store slower than a short one', async () => {
    let opened = 0
    const open = () => {
      const store = createMemoryTaskStore()
      const claim: TaskStore['claim'] = async (...given) => {
        if (opened === 1) await new Promise(resolve => setTimeout(resolve, 1_000))
        return store.claim(...given)
      }
      opened++
      return { nodes: [{ ...store, claim }] }
    }
    const checks = serviceContract('taskStore', { shared: false, open })
    await checks.find(({ name }) => name === 'expires a task after its ttl')?.run()
    expect(opened).to.equal(2)
  })

  together('close everything they opened and reject a setup with too few nodes', async () => {
    let open = 0
    const settings = {
      shared: true,
      open: () => {
        open++
        return { nodes: [createMemoryPeers('here')], close: () => void open-- }
      },
    }
    const failed = await failing(serviceContract('peers', settings))
    expect(open).to.equal(0)
    expect(failed.every(name => name.startsWith('two nodes: '))).to.equal(true)
    const together = serviceContract('peers', settings).find(({ name }) => name.startsWith('two nodes: '))
    const error = await together?.run().catch(thrown => thrown)
    expect(error).to.have.property('message', 'open(2) gave 1 nodes')
  })
})
