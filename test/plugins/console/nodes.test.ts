// Tests the console of several nodes in one process: data, actions and live records.
import { expect } from 'chai'
import { createHub } from '../../../cli/workers/hub.ts'
import { defineTool } from '../../../core/index.ts'
import { createPeers, type Peers } from '../../../core/sessions/peers.ts'
import { PATHS } from '../../../plugins/console/api.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { repeatDuring } from '../../support/repeat-during.ts'
import { modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { connectTo, startNeighbours, type TestNeighbour } from '../../support/worker-processes.ts'
import { bearerJson } from '../tool-policy/bearer-json.ts'
import { type Operator, startConsole } from './console-client.ts'

const SECRETS = ['planted-secret-of-the-config'.padEnd(40, 'x')]
const ARGUMENT = 'planted-argument-of-a-call'
const RESULT = 'planted-result-of-a-call'

const say = defineTool({ name: 'say', handler: () => RESULT })

type Json = Record<string, unknown>

describe('The console on several nodes', () => {
  let here: Operator
  let there: Operator
  let spare: TestNeighbour
  let spy: Peers
  const clock = createManualClock()
  const seen: Json[] = []
  const ofType = (type: string) => seen.filter(body => body['type'] === type)
  /** A message as the consoles of other nodes send it. */
  const tell = (to: string, body: Json) =>
    spy.send(to, { type: 'plugin', plugin: 'console', session: '', body: { v: 1, node: spy.node, ...body } })

  before(async () => {
    const [one, two, three] = startNeighbours(3) as [TestNeighbour, TestNeighbour, TestNeighbour]
    const config = {
      toolsets: { all: [say] },
      routes: { '/open': { toolsets: 'all' }, '/guarded': { toolsets: 'all', authorize: true as const } },
      secrets: SECRETS,
      plugins: { 'bearer-json': bearerJson() },
    }
    here = await startConsole(config, { actions: true }, { neighbours: one, clock })
    there = await startConsole(config, { actions: true }, { neighbours: two, clock })
    spare = three
    spy = createPeers(spare.bus('spy'))
    spy.receive(message => message.type === 'plugin' && seen.push(message.body as Json))
    const nodesOf = async () => (await here.get(PATHS.nodes)).body.nodes
    await passing(() => eventually('both nodes', nodesOf, nodes => nodes.length === 2))
  })
  after(async () => {
    await stopHosts()
    spare.end()
  })

  /** Advances the clock until `body` settles. */
  const passing = <Value>(body: () => Promise<Value>) => repeatDuring(() => clock.advance(50), body)
  const call = async ({ url }: Operator, path = '/open', headers: Record<string, string> = {}) => {
    // Lists of calls are sorted by time.
    await clock.advance(1)
    return modern(`${url}${path}`, 'tools/call', { name: 'say', arguments: { text: ARGUMENT } }, { headers })
  }
  const nodeOf = async (operator: Operator): Promise<string> => (await operator.get(PATHS.me)).body.node

  it('lists all nodes and marks its own', async () => {
    const { body } = await here.get(PATHS.nodes)
    expect(body).to.deep.include({ available: true, scope: 'machine' })
    const names = [await nodeOf(here), await nodeOf(there)]
    expect(body.nodes.map(({ name, self }: Json) => [name, self])).to.have.deep.members([
      [names[0], true],
      [names[1], false],
    ])
  })

  it('sums up calls, denials, clients and figures, and selects one node', async () => {
    await call(here)
    await call(there)
    await call(there, '/guarded')
    await call(here, '/guarded')
    const [first, second] = [await nodeOf(here), await nodeOf(there)]
    const read = async (path: string, node = '') => (await here.get(`${path}?node=${node}`)).body

    const { calls } = await read(PATHS.calls)
    expect(calls.map(({ node, route }: Json) => [node, route])).to.deep.equal([
      [first, '/guarded'],
      [second, '/guarded'],
      [second, '/open'],
      [first, '/open'],
    ])
    const only = await read(PATHS.calls, second)
    expect(only).to.deep.include({ node: second, scope: 'process' })
    expect(only.calls).to.have.length(2)

    const { groups } = await read(PATHS.denials)
    expect(groups.map(({ count, nodes }: Json) => [count, nodes])).to.deep.equal([[2, [first, second]]])
    const [client] = (await read(PATHS.clients)).clients
    expect([client.calls, client.nodes]).to.deep.equal([2, [first, second]])

    const overview = await read(PATHS.overview)
    expect(overview.topTools.map(({ name, calls }: Json) => [name, calls])).to.deep.equal([['say', 2]])
    const { topTools, pid } = await read(PATHS.overview, second)
    expect([topTools[0].calls, pid]).to.deep.equal([1, process.pid])
    // A sum has no process id.
    expect(overview).not.to.have.property('pid')
    expect((await read(PATHS.surface)).figures[0].calls).to.equal(2)
    expect((await here.get(`${PATHS.overview}?node=none`)).status).to.equal(404)
  })

  it('finds a request of another node by its id', async () => {
    await call(there, '/open', { 'X-Request-Id': 'request-of-another-node' })
    const { hits } = (await here.get(`${PATHS.search}?q=request-of-another-node`)).body
    expect(hits.map(({ kind, node }: Json) => [kind, node])).to.deep.equal([['call', await nodeOf(there)]])
  })

  it('lists sessions of all nodes, and ends one at its node', async () => {
    const session = await openSession(`${there.url}/open`)
    await openSession(`${here.url}/open`)
    const { sessions, total } = (await here.get(PATHS.sessions)).body
    expect(total).to.equal(2)
    const node = await nodeOf(there)
    const { handle } = sessions.find((row: Json) => row['node'] === node)
    const end = (body: Json) => here.post(PATHS.endSession, { handle, ...body })
    expect((await end({ node })).status, 'without a confirmation').to.equal(400)
    expect((await end({ confirm: true })).status, 'at the wrong node').to.equal(404)
    expect((await end({ confirm: true, node: 'none' })).status, 'at an unknown node').to.equal(404)
    expect((await session.request('ping')).status).to.equal(200)
    expect((await end({ confirm: true, node })).body.ok).to.equal(true)
    expect((await session.request('ping')).status).to.equal(404)
    const noted = (operator: Operator) =>
      operator.log.filter(({ code, outcome }) => code === 'MH3609' && outcome === 'ok')
    expect([noted(here).length, noted(there).length]).to.deep.equal([1, 1])
    expect((await end({ confirm: true, node })).status, 'the session is gone').to.equal(404)
  })

  it('streams calls and figures of all nodes, or of one', async () => {
    const all = await exchange(`${here.origin}${PATHS.events}`, { headers: here.headers })
    const node = await nodeOf(there)
    const one = await exchange(`${here.origin}${PATHS.events}?node=${node}`, { headers: here.headers })
    await passing(() => all.until(({ event, message }) => event === 'tick' && message.nodeStates.length >= 2))
    await call(there, '/open', { 'X-Request-Id': 'live-there' })
    await call(here, '/open', { 'X-Request-Id': 'live-here' })
    const idsOf = (events: readonly { readonly message: Json }[]) =>
      events.flatMap(({ message }) => ((message['calls'] ?? []) as Json[]).map(({ requestId }) => requestId))
    const wanted = new Set(['live-there', 'live-here'])
    const read = await passing(() =>
      all.until(({ message }) => {
        for (const { requestId } of message.calls ?? []) wanted.delete(requestId)
        return wanted.size === 0
      }),
    )
    expect(idsOf(read)).to.include.members(['live-there', 'live-here'])
    const filtered = await passing(() => one.until(({ event }) => event === 'calls'))
    expect(filtered.every(({ message }) => message.node === node)).to.equal(true)
    expect(idsOf(filtered)).to.deep.equal(['live-there'])
    all.drop()
    one.drop()
  })

  it('sends other nodes nothing that the page does not show, and no records without a viewer', async () => {
    const to = await nodeOf(there)
    const asked = ['overview', 'calls', 'denials', 'sessions', 'tasks', 'clients', 'items', 'node', 'find']
    for (const what of [...asked, 'config', 'constructor', 'end-session']) {
      await tell(to, { type: 'ask', id: what, what, params: { text: 'say', handle: 'x'.repeat(22) } })
    }
    await eventually('all replies', () => ofType('reply').length >= asked.length + 3)
    const replies = new Map(ofType('reply').map(reply => [reply['id'], reply]))
    for (const what of asked) expect(replies.get(what)?.['value'], what).to.be.an('object')
    for (const what of ['config', 'constructor', 'end-session']) {
      expect(replies.get(what)?.['refusal'], what).to.deep.include({ status: 404 })
    }
    expect(ofType('live')).to.deep.equal([])
    await tell(to, { type: 'watch', most: 1 })
    await call(here)
    await call(here)
    await Promise.all(Array.from({ length: 8 }, () => call(there)))
    const live = await eventually(
      'live records',
      async () => {
        await clock.advance(1_000)
        return ofType('live')
      },
      list => list.some(({ skipped }) => Number(skipped) > 0),
    )
    for (const { calls } of live) expect(calls).to.have.length.at.most(1)
    expect(live.flatMap(({ calls }) => calls)).not.to.deep.equal([])
    await tell(to, { type: 'unwatch' })
    const text = JSON.stringify(seen)
    const cookies = [here, there].map(({ oneTimeToken }) => oneTimeToken)
    for (const planted of [ARGUMENT, RESULT, SECRETS[0] as string, ...cookies]) expect(text).not.to.include(planted)
  })

  it('marks a silent node, and replies without its data', async () => {
    const read = async () => (await here.get(PATHS.sessions)).body
    const stateOf = ({ nodeStates }: { readonly nodeStates: readonly Json[] }) =>
      nodeStates.find(({ name }) => name === 'mute')?.['state']
    const to = await nodeOf(here)
    await tell(to, { type: 'here', name: 'mute', machine: 'spare', replied: true })
    const found = await passing(() =>
      eventually('the silent node', async () => {
        const body = await read()
        return stateOf(body) === 'silent' ? body : undefined
      }),
    )
    expect(found?.available).to.equal(true)
    expect((await here.get(`${PATHS.calls}?node=mute`)).body).to.deep.include({ available: false })
    await tell(to, { type: 'gone' })
    await eventually('no silent node', async () => stateOf(await read()) === undefined)
  })

  it('marks a node that cannot read its data, and shows the reason for that node', async () => {
    const to = await nodeOf(here)
    const refusal = { status: 503, error: 'unavailable', message: 'planted reason' }
    let isOver = false
    spy.receive(message => {
      const { type, id } = (message.type === 'plugin' ? message.body : {}) as Json
      if (type === 'ask' && !isOver) void tell(to, { type: 'reply', id, name: 'ill', machine: 'spare', refusal })
    })
    await tell(to, { type: 'here', name: 'ill', machine: 'spare', replied: true })
    const found = await eventually('the mark', async () => {
      const { body } = await here.get(PATHS.sessions)
      return body.nodeStates.some(({ name, state }: Json) => name === 'ill' && state === 'failed') ? body : undefined
    })
    expect(found?.available).to.equal(true)
    const { available, reason } = (await here.get(`${PATHS.sessions}?node=ill`)).body
    expect([available, reason]).to.deep.equal([false, 'planted reason'])
    isOver = true
    await tell(to, { type: 'gone' })
  })

  it('lists a session of a dead node at a node that has a copy', async () => {
    const to = await nodeOf(here)
    const row = {
      handle: 'h',
      node: 'dead',
      route: '/open',
      lastUsedAt: 1,
      transport: 'transport-streamable',
      streams: 0,
    }
    const sessions = { sessions: [row], total: 1, streams: 0, waitingBytes: 0 }
    spy.receive(message => {
      const { type, id } = (message.type === 'plugin' ? message.body : {}) as Json
      if (type === 'ask') void tell(to, { type: 'reply', id, name: 'copies', machine: 'spare', value: sessions })
    })
    await tell(to, { type: 'here', name: 'copies', machine: 'spare', replied: true })
    const read = async () => (await here.get(PATHS.sessions)).body.sessions.find(({ handle }: Json) => handle === 'h')
    expect((await eventually('the session', read)).node).to.equal('copies')
    await tell(to, { type: 'gone' })
  })

  it('reloads every program once after a confirmation, and reports each result', async () => {
    const to = await nodeOf(here)
    const workers = ['worker 1', 'worker 2']
    const asked: Json[] = []
    const spies = workers.map(name => {
      const peers = createPeers(spare.bus(name))
      const tellHere = (body: Json) =>
        peers.send(to, { type: 'plugin', plugin: 'console', session: '', body: { v: 1, node: peers.node, ...body } })
      peers.receive(message => {
        const { type, id, what, params } = (message.type === 'plugin' ? message.body : {}) as Json
        if (type !== 'ask') return
        if (what === 'reload') asked.push({ name, ...(params as Json) })
        const value = what === 'reload' ? { ok: false, message: 'planted reason' } : { nodes: workers }
        void tellHere({ type: 'reply', id, name, machine: 'spare', value })
      })
      return tellHere
    })
    for (const [index, tellHere] of spies.entries()) {
      await tellHere({ type: 'here', name: workers[index], machine: 'spare', replied: true })
    }
    expect((await here.post(PATHS.reload, {})).status, 'without a confirmation').to.equal(400)
    expect(asked).to.deep.equal([])
    const { status, body } = await here.post(PATHS.reload, { confirm: true })
    expect([status, body.ok]).to.deep.equal([200, false])
    const [first, second] = [to, await nodeOf(there)]
    const names = body.nodes.map(({ node }: Json) => node)
    expect(names[0]).to.equal(first)
    expect(names.slice(1)).to.have.members([second, asked[0]?.['name']])
    expect(asked.map(({ operator }) => operator)).to.deep.equal([`one-time token, node ${to}`])
    const messageOf = (name: unknown) => body.nodes.find(({ node }: Json) => node === name)
    expect(messageOf(asked[0]?.['name'])).to.deep.include({ ok: false, message: 'planted reason' })
    // An embedded host has no reload.
    expect(messageOf(second).ok).to.equal(false)
    const noted = here.log.filter(({ code, action }) => code === 'MH3609' && action === 'reload')
    expect(noted.map(({ outcome }) => outcome)).to.deep.equal(['failed', 'failed', 'failed'])
    expect((await here.post(PATHS.reload, { confirm: true, node: 'worker 2' })).body.nodes).to.have.length(1)
    expect(asked.at(-1)).to.include({ name: 'worker 2' })
    for (const tellHere of spies) await tellHere({ type: 'gone' })
  })

  it('forgets a node that closes', async () => {
    await there.host.close({ grace: 0 })
    const read = async () => (await here.get(PATHS.nodes)).body
    const { nodes, available } = await eventually('one node', read, body => body.nodes.length === 1)
    expect([available, nodes[0].self]).to.deep.equal([true, true])
  })
})

describe('Lost nodes', () => {
  after(stopHosts)

  it('are logged once with their name, and once when they return', async () => {
    const hub = createHub(undefined, {})
    const clock = createManualClock()
    const { log, host } = await startConsole(
      { toolsets: { all: [say] }, routes: { '/open': { toolsets: 'all' } }, secrets: SECRETS },
      {},
      { neighbours: connectTo(hub), clock },
    )
    const start = async (name: string, address = name) => {
      const neighbour = connectTo(hub)
      const peers = createPeers(neighbour.bus(address))
      peers.receive(() => undefined)
      const tell = (type: string) =>
        peers.publish({
          type: 'plugin',
          plugin: 'console',
          session: '',
          body: { v: 1, node: peers.node, type, name, machine: 'm', replied: true },
        })
      await tell('here')
      return { neighbour, tell }
    }
    const lines = () => log.flatMap(({ code, node }) => (code === 'MH3613' || code === 'MH3614' ? [[code, node]] : []))
    const pass = async () => {
      await clock.advance(15_000)
      return lines()
    }
    const one = await start('one')
    const two = await start('two')
    await one.tell('gone')
    one.neighbour.end()
    two.neighbour.end()
    await eventually('the warning', pass, ({ length }) => length > 0)
    // A node that closed is not lost, and a lost node is reported once.
    for (let checks = 0; checks < 3; checks++) await pass()
    expect(lines()).to.deep.equal([['MH3613', 'two']])
    await start('two', 'two after its restart')
    await eventually('the line', pass, ({ length }) => length > 1)
    await pass()
    expect(lines()).to.deep.equal([
      ['MH3613', 'two'],
      ['MH3614', 'two'],
    ])
    await host.close({ grace: 0 })
  })
})
