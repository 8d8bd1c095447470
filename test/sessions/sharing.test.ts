// Tests that startup of a multi-process host fails if sessions, secrets or changes are not shared.
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import { stopAtFirst } from '../../core/http/errors.ts'
import { defineTool } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { createSecrets } from '../../core/kernel/secrets.ts'
import { createSessionStore } from '../../core/sessions/create-session-store.ts'
import { createMemoryEventStore } from '../../core/sessions/memory-event-store.ts'
import { checkSharing } from '../../core/sessions/sharing.ts'
import type { Neighbours } from '../../core/slots.ts'
import { createMemoryStore } from '../../core/store/memory-store.ts'
import { plugin } from '../fixtures/plugins.ts'
import { createMemoryPeers } from '../support/memory-services.ts'
import { startNeighbours } from '../support/worker-processes.ts'

const SECRET = 'one secret that is long enough to use'
const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }

interface RefusalSettings {
  readonly secrets?: readonly string[]
  readonly plugins?: object
  readonly processes?: number
  readonly neighbours?: Neighbours | undefined
}

/** The message with which two processes refuse to start; undefined where they do not. */
async function refusal(routes: object, settings: RefusalSettings = {}) {
  const { secrets = [SECRET], plugins = {}, processes = 2, neighbours } = settings
  const toolsets = { all: [defineTool({ name: 'echo', handler: () => 'echoed' })] }
  const config = {
    server: { name: 'test', version: '1' },
    http: { port: 0 },
    secrets: [...secrets],
    toolsets,
    routes: routes as Record<string, { toolsets: string }>,
    plugins: { 'transport-streamable': {}, ...plugins },
  }
  try {
    const host = await createHost(config, { log, processes, ...(neighbours && { neighbours }) })
    await host.close()
    return undefined
  } catch (error) {
    expect(error).to.include({ name: 'StartError', exitCode: 2 })
    return (error as Error).message
  }
}

const sessionsOf = (host: InternalHost, shared: true | 'host') =>
  createSessionStore({ ...createMemoryStore(), shared }, { node: host.config.node, log: host.log })

const stateless = { toolsets: 'all', stateless: true }

describe('Startup of one of two processes fails', () => {
  it('with in-memory sessions, listing the routes and both solutions', async () => {
    const message = await refusal({ '/': { toolsets: 'all' }, '/b': { toolsets: 'all' }, '/c': stateless })
    expect(message).to.include("sessions of routes['/'], routes['/b'] exist in one process only")
    expect(message).to.match(/`stateless: true`.*cluster-redis/)
  })

  it('with generated keys, explaining how to create and set a secret', async () => {
    const message = await refusal({ '/': stateless }, { secrets: [] })
    expect(message).to.include('`openssl rand -base64 32`')
    expect(message).to.match(/MCP_HOST_SECRETS.*`secrets`/)
    expect(message).not.to.include('the sessions of')
  })

  it('with changes that other processes do not receive', async () => {
    const message = await refusal({ '/a': { ...stateless, listen: true }, '/b': stateless })
    expect(message).to.match(/subscriptions\/listen.*routes\['\/a'\].*`listen: true`.*cluster-redis.*change-bus-redis/)
  })

  it('with the development authorization server, which is limited to one process', async () => {
    const message = await refusal({ '/': stateless }, { plugins: { 'dev-auth-server': {} } })
    expect(message).to.match(/^plugins\['dev-auth-server'\]: .*--workers$/)
  })

  it('with all problems in one message', async () => {
    const message = await refusal({ '/': { toolsets: 'all' } }, { secrets: [] })
    expect(message?.split('\n- ')).to.have.length(3)
  })
})

describe('Startup of one of two processes succeeds', () => {
  it('without sessions, and of a single process with sessions, and without a transport', async () => {
    expect(await refusal({ '/': stateless })).to.equal(undefined)
    expect(await refusal({ '/': { toolsets: 'all' } }, { processes: 1, secrets: [] })).to.equal(undefined)
    expect(await refusal({ '/': { toolsets: 'all', plugins: { 'transport-streamable': false } } })).to.equal(undefined)
  })

  it('with sessions only if plugins provide every required slot', () => {
    const slots = new Set<string>(['sessionStore', 'eventStore', 'changeBus', 'peers'])
    const route = { path: '/', stateless: false, listen: true, revisions: ['2026-07-28', '2025-11-25'] } as never
    const isFilled = (slot: string) => slots.has(slot)
    const parts = {
      processes: 3,
      routes: [route],
      isFilled,
      hasNeighbours: false,
      sharedOn: () => false as const,
      ownKeys: false,
      report: stopAtFirst,
      suggest: () => 'something',
    }
    const check = () => checkSharing(parts)
    check()
    for (const slot of [...slots]) {
      slots.delete(slot)
      expect(check).to.throw(`nothing provides ${slot}`)
      slots.add(slot)
    }
  })
})

describe('Host process with inter-process messages', () => {
  const carried = (routes: object, plugins: object = {}) =>
    refusal(routes, { plugins, neighbours: startNeighbours(1)[0] })
  const kept = plugin(host => {
    host.provide('sessionStore', sessionsOf(host, 'host'))
    host.provide('eventStore', createMemoryEventStore())
  })

  it('starts with shared stores, and for subscriptions only', async () => {
    expect(await carried({ '/': { toolsets: 'all' } }, { kept })).to.equal(undefined)
    expect(await carried({ '/': { ...stateless, listen: true } })).to.equal(undefined)
  })

  it('rejects in-memory sessions and names the missing slots', async () => {
    expect(await carried({ '/': { toolsets: 'all' } })).to.include('(nothing provides sessionStore, eventStore)')
  })

  it('rejects sessions shared with other nodes that it cannot reach', async () => {
    const everywhere = plugin(host => {
      host.provide('sessionStore', sessionsOf(host, true))
      host.provide('eventStore', createMemoryEventStore())
    })
    expect(await carried({ '/': { toolsets: 'all' } }, { everywhere })).to.include('no plugin provides `peers`')
  })
})

describe('Startup with a shared session store', () => {
  const shared = (fills: readonly ('sessionStore' | 'peers')[]) =>
    plugin(host => {
      if (fills.includes('sessionStore')) host.provide('sessionStore', sessionsOf(host, true))
      if (fills.includes('peers')) host.provide('peers', createMemoryPeers(host.config.node))
    })
  const refused = (
    fills: readonly ('sessionStore' | 'peers')[],
    secrets = [SECRET],
    route: object = { toolsets: 'all' },
  ) => refusal({ '/': route }, { plugins: { shared: shared(fills) }, processes: 1, secrets })

  it('fails without messages between nodes', async () => {
    const message = await refused(['sessionStore'])
    expect(message).to.match(/routes\['\/'\]/)
    expect(message).to.match(/`peers`.*cluster-redis.*change-bus-redis/)
  })

  it('fails without shared secrets for session ids', async () => {
    const message = await refused(['sessionStore', 'peers'], [])
    expect(message).to.match(/routes\['\/'\]/)
    expect(message).to.include('`openssl rand -base64 32`')
  })

  it('succeeds with both, and without sessions', async () => {
    expect(await refused(['sessionStore', 'peers'])).to.equal(undefined)
    expect(await refused(['sessionStore'], [], stateless)).to.equal(undefined)
  })
})

describe('MCP_HOST_SECRETS', () => {
  const keysOf = (...given: Parameters<typeof createSecrets>) =>
    createSecrets(...given)
      .keys('session-id')
      .map(key => key.toString('hex'))

  it('provides comma-separated secrets if the config has none', () => {
    const other = 'another secret that is long enough'
    expect(keysOf([undefined, ''], ` ${SECRET},${other}, `)).to.deep.equal(keysOf([SECRET, other]))
    expect(keysOf([other], SECRET)).to.deep.equal(keysOf([other]))
    expect(createSecrets([], ' , ').generated).to.equal(true)
  })

  it('is rejected if a secret is too short', () => {
    expect(() => createSecrets([], `${SECRET},short`)).to.throw(/^MCP_HOST_SECRETS\[1\] is shorter than 32 characters/)
  })
})
