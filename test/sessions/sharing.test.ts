// What several processes would each keep to itself stops the start of a host that is one of them, all of it at once.
import { expect } from 'chai'
import { createHost, type Neighbours } from '../../core/create-host.ts'
import { stopAtFirst } from '../../core/http/start-error.ts'
import { defineTool } from '../../core/index.ts'
import { createSecrets } from '../../core/kernel/secrets.ts'
import { createMemoryEventStore } from '../../core/sessions/memory-event-store.ts'
import { createMemoryPeers } from '../../core/sessions/memory-peers.ts'
import { createMemorySessionStore } from '../../core/sessions/memory-session-store.ts'
import { checkSharing } from '../../core/sessions/sharing.ts'
import { plugin } from '../fixtures/plugins.ts'
import { startNeighbours } from '../support/neighbours.ts'

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

const stateless = { toolsets: 'all', stateless: true }

describe('a host that is one of two processes refuses to start', () => {
  it('with sessions in memory: it names the routes that keep them, and both ways out', async () => {
    const message = await refusal({ '/': { toolsets: 'all' }, '/b': { toolsets: 'all' }, '/c': stateless })
    expect(message).to.include("the sessions of routes['/'], routes['/b'], whose clients")
    expect(message).to.include('set `stateless: true` on those routes, or switch on cluster-redis (')
  })

  it('with keys that each made for itself: it says how to make a secret and where to put it', async () => {
    const message = await refusal({ '/': stateless }, { secrets: [] })
    expect(message).to.include('`openssl rand -base64 32`')
    expect(message).to.include("MCP_HOST_SECRETS, or into the config's `secrets`")
    expect(message).not.to.include('the sessions of')
  })

  it('with changes that only one of them would tell of', async () => {
    const message = await refusal({ '/a': { ...stateless, listen: true }, '/b': stateless })
    expect(message).to.include(
      "subscriptions/listen on routes['/a'] tells of: remove `listen: true`, or switch on cluster-redis or change-bus-redis",
    )
  })

  it('with the authorization server for development, whose users are in one process', async () => {
    const message = await refusal({ '/': stateless }, { plugins: { 'dev-auth-server': {} } })
    expect(message).to.match(/^plugins\['dev-auth-server'\]: .*start without --workers$/)
  })

  it('and says everything at once', async () => {
    const message = await refusal({ '/': { toolsets: 'all' } }, { secrets: [] })
    expect(message?.split('\n- ')).to.have.length(3)
  })
})

describe('a host starts', () => {
  it('as one of two processes without sessions, as the only one with them, and without a transport', async () => {
    expect(await refusal({ '/': stateless })).to.equal(undefined)
    expect(await refusal({ '/': { toolsets: 'all' } }, { processes: 1, secrets: [] })).to.equal(undefined)
    expect(await refusal({ '/': { toolsets: 'all', plugins: { 'transport-streamable': false } } })).to.equal(undefined)
  })

  it('with sessions where plugins provide all that they take, and not where one is missing', () => {
    const slots = new Set<string>(['sessionStore', 'eventStore', 'changeBus', 'peers'])
    const route = { path: '/', stateless: false, listen: true, revisions: ['2026-07-28', '2025-11-25'] } as never
    const isFilled = (slot: string) => slots.has(slot)
    const parts = {
      processes: 3,
      routes: [route],
      isFilled,
      isCarried: false,
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

describe('a host that is one of two processes, whose changes and messages are carried between them,', () => {
  const carried = (routes: object, plugins: object = {}) =>
    refusal(routes, { plugins, neighbours: startNeighbours(1)[0] })
  const kept = plugin(host => {
    host.fill('sessionStore', { ...createMemorySessionStore(host.node), shared: 'host' })
    host.fill('eventStore', createMemoryEventStore())
  })

  it('starts where the rest is kept for both, and where it only listens', async () => {
    expect(await carried({ '/': { toolsets: 'all' } }, { kept })).to.equal(undefined)
    expect(await carried({ '/': { ...stateless, listen: true } })).to.equal(undefined)
  })

  it('does not start with sessions in memory: what is missing is named', async () => {
    expect(await carried({ '/': { toolsets: 'all' } })).to.include('(nothing provides sessionStore, eventStore)')
  })

  it('does not start where sessions are kept for nodes elsewhere, which it does not reach', async () => {
    const everywhere = plugin(host => {
      host.fill('sessionStore', { ...createMemorySessionStore(host.node), shared: true })
      host.fill('eventStore', createMemoryEventStore())
    })
    expect(await carried({ '/': { toolsets: 'all' } }, { everywhere })).to.include('nothing provides peers')
  })
})

describe('a host whose session store is shared refuses to start', () => {
  const shared = (fills: readonly ('sessionStore' | 'peers')[]) =>
    plugin(host => {
      const store = createMemorySessionStore(host.node)
      if (fills.includes('sessionStore')) host.fill('sessionStore', { ...store, shared: true })
      if (fills.includes('peers')) host.fill('peers', createMemoryPeers(host.node))
    })
  const refused = (
    fills: readonly ('sessionStore' | 'peers')[],
    secrets = [SECRET],
    route: object = { toolsets: 'all' },
  ) => refusal({ '/': route }, { plugins: { shared: shared(fills) }, processes: 1, secrets })

  it('where nothing carries messages between the nodes', async () => {
    const message = await refused(['sessionStore'])
    expect(message).to.include("routes['/']: its sessions are kept for every node, but nothing provides peers")
    expect(message).to.include('fill the slot `peers` there as well, or switch on cluster-redis or change-bus-redis')
  })

  it('where no other node could read the ids of its sessions', async () => {
    const message = await refused(['sessionStore', 'peers'], [])
    expect(message).to.include("routes['/']: its sessions are kept for every node, but the keys that sign")
    expect(message).to.include('`openssl rand -base64 32`')
  })

  it('and not where both are there, nor where there are no sessions', async () => {
    expect(await refused(['sessionStore', 'peers'])).to.equal(undefined)
    expect(await refused(['sessionStore'], [], stateless)).to.equal(undefined)
  })
})

describe('MCP_HOST_SECRETS', () => {
  const keysOf = (...given: Parameters<typeof createSecrets>) =>
    createSecrets(...given)
      .keys('session-id')
      .map(key => key.toString('hex'))

  it('gives secrets, with commas between them, where the config gives none', () => {
    const other = 'another secret that is long enough'
    expect(keysOf([undefined, ''], ` ${SECRET},${other}, `)).to.deep.equal(keysOf([SECRET, other]))
    expect(keysOf([other], SECRET)).to.deep.equal(keysOf([other]))
    expect(createSecrets([], ' , ').generated).to.equal(true)
  })

  it('is refused where one of its secrets is short', () => {
    expect(() => createSecrets([], `${SECRET},short`)).to.throw(/^MCP_HOST_SECRETS\[1\] is shorter than 32 characters/)
  })
})
