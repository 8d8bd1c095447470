import { expect } from 'chai'
import { type Config, defineTool } from '../../../core/index.ts'
import { createSessionStore } from '../../../core/sessions/create-session-store.ts'
import type { SessionLimits } from '../../../core/sessions/session-store.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { initialize, openSession, readWhole, type SessionClient } from '../../support/session-client.ts'
import { startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'
import { createSharedStore } from '../../support/test-store.ts'

afterEach(stopHosts)

const { tool: puppet, call } = createPuppet()
const gone: string[] = []
const IDLE = 60_000

/** A host whose `ended(subject)` resolves when that user's session is over. */
async function start(sessions: NonNullable<Config['sessions']>, config: Partial<Config> = {}) {
  const gates = new Map<string, ReturnType<typeof createGate<void>>>()
  const gateOf = (subject = 'nobody') => {
    const gate = gates.get(subject) ?? createGate()
    gates.set(subject, gate)
    return gate
  }
  gone.length = 0
  const clock = createManualClock()
  const served: TestConfig = {
    toolsets: { all: [puppet, defineTool({ name: 'echo', handler: () => '' })] },
    routes: { '/': { toolsets: 'all' }, '/other': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, who: identifyByHeader() },
    sessions,
    async runSession({ user }, _session, run) {
      await run()
      gone.push(user?.subject ?? 'nobody')
      gateOf(user?.subject).open()
    },
    ...config,
  }
  const started = await startHost(served, undefined, { clock })
  const as = (subject: string) => openSession(started.url, { headers: { 'X-User': subject } })
  const idle = () => clock.advance(2 * IDLE)
  return { ...started, clock, as, idle, ended: (subject: string) => gateOf(subject).opened }
}

const isAlive = async (client: SessionClient) => {
  const { status } = await client.request('ping')
  expect(status).to.be.oneOf([200, 404])
  return status === 200
}

describe('sessions.idleTimeout', () => {
  it('ends an idle session: its id gets 404', async () => {
    const { as, idle, ended } = await start({ idleTimeout: IDLE })
    const client = await as('ada')
    await idle()
    await ended('ada')
    expect(await isAlive(client)).to.equal(false)
  })

  it('counts an open GET stream as activity', async () => {
    const { as, idle, ended } = await start({ idleTimeout: IDLE })
    const client = await as('listener')
    const stream = await client.get()
    await as('first')
    await idle()
    await ended('first')
    await as('second')
    await idle()
    await ended('second')
    expect(gone).to.deep.equal(['first', 'second'])
    expect(await isAlive(client)).to.equal(true)
    stream.drop()
    await eventually('it is idle, and ends', () => idle().then(() => gone.includes('listener')))
    await ended('listener')
    expect(await isAlive(client)).to.equal(false)
  })

  it('counts a running call as activity, even after its client disconnected', async () => {
    const { as, idle, ended } = await start({ idleTimeout: IDLE })
    const client = await as('caller')
    const running = client.call('puppet', { name: 'long' })
    const { ctx, finish } = await call('long')
    ctx.progress(1)
    ;(await running).drop()
    await as('other')
    await idle()
    await ended('other')
    expect(gone).to.deep.equal(['other'])
    finish('done')
    await eventually('it is idle, and ends', () => idle().then(() => gone.includes('caller')))
    await ended('caller')
  })

  it('ends an expired session before the periodic check', async () => {
    const { as, clock, ended } = await start({ idleTimeout: IDLE })
    await clock.advance(1_000)
    const client = await as('ada')
    await clock.advance(IDLE)
    expect(gone).to.deep.equal([])
    expect(await isAlive(client)).to.equal(false)
    await ended('ada')
  })

  it('restarts with every request', async () => {
    const { as, clock } = await start({ idleTimeout: IDLE })
    const client = await as('busy')
    await as('lazy')
    for (let count = 0; count < 6; count++) {
      await clock.advance(IDLE / 2)
      expect(await isAlive(client)).to.equal(true)
    }
    expect(gone).to.deep.equal(['lazy'])
  })
})

describe('sessions.maxIdle', () => {
  it('evicts the longest idle sessions of the owner with the most', async () => {
    const { url, log } = await start({ maxIdle: 5 })
    const from = (localAddress: string) => openSession(url, { localAddress })
    const quiet = [await from('127.0.0.3'), await from('127.0.0.4')]
    const greedy: SessionClient[] = []
    for (let count = 0; count < 10; count++) greedy.push(await from('127.0.0.2'))
    const late = await from('127.0.0.5')
    const alive = async (clients: readonly SessionClient[]) => {
      const states: boolean[] = []
      for (const client of clients) states.push(await isAlive(client))
      return states
    }
    expect(await alive([...quiet, late])).to.deep.equal([true, true, true])
    expect(await alive(greedy)).to.deep.equal([...Array(8).fill(false), true, true])
    const [told, ...more] = log.filter(({ message }) => message?.includes('sessions.maxIdle'))
    expect([told?.level, told?.['maxIdle'], more]).to.deep.equal(['warn', 5, []])
  })

  it('evicts the longest idle session if each owner has one', async () => {
    const { url, clock } = await start({ maxIdle: 3 })
    const clients: SessionClient[] = []
    for (const localAddress of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) {
      clients.push(await openSession(url, { localAddress }))
      await clock.advance(10)
    }
    const [used, longest, other] = clients as [SessionClient, SessionClient, SessionClient]
    expect(await isAlive(used)).to.equal(true)
    await openSession(url, { localAddress: '127.0.0.5' })
    expect([await isAlive(used), await isAlive(longest), await isAlive(other)]).to.deep.equal([true, false, true])
  })

  it('counts authenticated users rather than addresses', async () => {
    const { as } = await start({ maxIdle: 3 })
    const quiet = await as('quiet')
    for (let count = 0; count < 6; count++) await as('greedy')
    expect(await isAlive(quiet)).to.equal(true)
    expect(gone).to.deep.equal(Array(4).fill('greedy'))
  })

  it('never evicts a session with an open GET stream or running call', async () => {
    const { as } = await start({ maxIdle: 1 })
    const listening = await as('greedy')
    const stream = await listening.get()
    const calling = await as('greedy')
    const running = calling.call('puppet', { name: 'busy' })
    const { finish } = await call('busy')
    for (let count = 0; count < 4; count++) await as('greedy')
    expect((await listening.request('ping')).status).to.equal(200)
    finish('still here')
    expect((await readWhole(running)).message.result.content[0].text).to.equal('still here')
    stream.drop()
  })

  it('does not refuse new sessions', async () => {
    const { url } = await start({ maxIdle: 2 })
    for (let count = 0; count < 6; count++) expect((await initialize(url)).status).to.equal(200)
  })
})

describe('sessions.maxPerOwner', () => {
  it('answers 429 with Retry-After beyond the limit, until a session ends', async () => {
    const { url, as } = await start({ maxPerOwner: 2 })
    const [first] = [await as('ada'), await as('ada')]
    const refused = await initialize(url, { headers: { 'X-User': 'ada' } })
    expect([refused.status, refused.message.error.code, refused.message.id]).to.deep.equal([429, -32600, 'initialize'])
    expect(Number(refused.headers['retry-after'])).to.be.greaterThan(0)
    expect(refused.headers['mcp-session-id']).to.equal(undefined)
    await first.end()
    await as('ada')
  })

  it('does not count expired sessions that the periodic check has not ended yet', async () => {
    const { as, clock, ended } = await start({ maxPerOwner: 1, idleTimeout: IDLE })
    await clock.advance(1_000)
    await as('ada')
    await clock.advance(IDLE)
    expect(gone).to.deep.equal([])
    await as('ada')
    await ended('ada')
    expect(gone).to.deep.equal(['ada'])
  })

  it('counts a user by issuer and subject across routes, and others by address', async () => {
    const { url } = await start({ maxPerOwner: 1 })
    const statusOf = async (path: string, headers: Record<string, string>, localAddress = '127.0.0.1') =>
      (await initialize(`${url}${path}`, { headers, localAddress })).status
    expect(await statusOf('/', { 'X-User': 'ada' })).to.equal(200)
    expect(await statusOf('/other', { 'X-User': 'ada' }, '127.0.0.2')).to.equal(429)
    expect(await statusOf('/', { 'X-User': 'ada', 'X-Issuer': 'https://a.example' })).to.equal(200)
    expect(await statusOf('/', { 'X-User': 'bob' })).to.equal(200)
    expect(await statusOf('/', {})).to.equal(200)
    expect(await statusOf('/', {})).to.equal(429)
    expect(await statusOf('/', {}, '127.0.0.2')).to.equal(200)
  })

  it('holds for concurrent initialize requests', async () => {
    const configuring = createGate()
    let asked = 0
    const { url } = await start(
      { maxPerOwner: 2 },
      {
        async configureSession() {
          if (++asked === 2) configuring.open()
          await configuring.opened
        },
      },
    )
    const answers = await Promise.all(Array.from({ length: 6 }, () => initialize(url)))
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 200, 429, 429, 429, 429])
    expect(asked, 'a session that is refused was configured').to.equal(2)
  })

  it('leaves half of maxIdle to other owners by default', async () => {
    const bounds: SessionLimits[] = []
    const watched = plugin(host => {
      const store = createSessionStore(createSharedStore(), { node: host.config.node, log: host.log })
      const create = store.create.bind(store)
      store.create = (digest, record, given) => {
        bounds.push(given)
        return create(digest, record, given)
      }
      host.provide('sessionStore', store)
    })
    const { url } = await start({}, { plugins: { 'transport-streamable': {}, watched } })
    expect((await initialize(url)).status).to.equal(200)
    expect(bounds.map(({ maxPerOwner, maxIdle }) => [maxPerOwner, maxIdle])).to.deep.equal([[5_000, 10_000]])
  })
})
