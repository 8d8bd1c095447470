import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { type Config, defineResource, defineTool } from '../../../core/index.ts'
import type { SessionRequest } from '../../../core/mcp/routes/configure-session.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { createGate } from '../../support/gate.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { initialize, nextMessage, openSession, readRest } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

afterEach(stopHosts)

const echo = defineTool({ name: 'echo', handler: (_args, { session }) => String(session?.id) })
const gold = defineTool({ name: 'gold', handler: () => 'gold' })

const start = (config: Partial<Config>) =>
  startHost({
    toolsets: { all: [echo], gold: [gold] },
    routes: { '/': { toolsets: 'all' }, '/t/:category': { toolsets: ':category' } },
    plugins: { 'transport-streamable': {}, who: identifyByHeader() },
    ...config,
  })

const toolNames = async (client: { request: Awaited<ReturnType<typeof openSession>>['request'] }) =>
  (await client.request('tools/list')).message.result.tools.map(({ name }: { name: string }) => name)

describe('configureSession', () => {
  it('is called once per session with the same claims, with the initialize request', async () => {
    const seen: Array<[SessionRequest, string | undefined]> = []
    const { url } = await start({
      configureSession: (request, session) => void seen.push([request, session.id]),
    })
    const headers = { 'X-User': 'ada', 'X-Tier': 'gold', 'X-More': 'first' }
    const client = await openSession(`${url}/t/all`, { headers })
    for (const more of ['second', 'third']) await client.request('tools/list', {}, { headers: { 'X-More': more } })
    await (await client.get()).drop()
    expect(seen).to.have.length(1)
    const [[request, id] = []] = seen
    expect(id).to.equal(client.id)
    expect(request?.headers['x-more']).to.equal('first')
    expect(request?.user).to.deep.include({ subject: 'ada', claims: { tier: 'gold' } })
    expect([request?.route, request?.ip]).to.deep.equal([
      { path: '/t/:category', params: { category: 'all' } },
      '127.0.0.1',
    ])
  })

  it('configures the visible tools of its session, without effect on others', async () => {
    const { url } = await start({
      async configureSession({ user }, session) {
        await nextTurn()
        if (user?.claims['tier'] !== 'gold') return
        session.addToolset('gold')
        session.server = { name: 'golden', version: '9.9.9', instructions: 'Shine.' }
        session.add(defineTool({ name: `own-${user.subject}`, handler: () => 'own' }))
      },
    })
    const golden = await openSession(url, { headers: { 'X-User': 'ada', 'X-Tier': 'gold' } })
    const plain = await openSession(url, { headers: { 'X-User': 'bob' } })
    expect(await toolNames(golden)).to.have.members(['echo', 'gold', 'own-ada'])
    expect(await toolNames(plain)).to.deep.equal(['echo'])
    const { result } = golden.initialized.message
    expect(result.serverInfo).to.deep.equal({ name: 'golden', version: '9.9.9' })
    expect(result.instructions).to.equal('Shine.')
    expect(plain.initialized.message.result.serverInfo.name).to.equal('test-host')
    expect((await golden.request('tools/call', { name: 'gold' })).message.result.content[0].text).to.equal('gold')
    expect((await plain.request('tools/call', { name: 'gold' })).message.error.code).to.equal(-32602)
  })

  it('is called again for a token with other claims, and each request is served by its own', async () => {
    const seen: unknown[] = []
    const note = defineResource({ name: 'note', uri: 'note://gold', handler: () => 'gold' })
    const { url, host, log } = await start({
      toolsets: { all: [echo], gold: [gold, note] },
      configureSession({ user, headers }, session) {
        const tier = user?.claims['tier']
        seen.push([tier, headers['x-more'], session.id])
        if (tier === 'banned') throw new Error('no')
        if (tier === 'gold') session.addToolset('gold')
      },
    })
    const client = await openSession(url, { headers: { 'X-User': 'ada', 'X-Tier': 'gold', 'X-More': 'first' } })
    const withTier = (tier: string | undefined) => ({ headers: { 'X-Tier': tier, 'X-More': 'later' } })
    const call = async (tier: string | undefined) =>
      (await client.request('tools/call', { name: 'gold' }, withTier(tier))).message
    const codes = async (...tiers: Array<string | undefined>) => {
      const answers = await Promise.all(tiers.map(call))
      return answers.map(({ error, result }) => error?.code ?? result.content[0].text)
    }
    await client.request('resources/subscribe', { uri: 'note://gold' })
    const golden = await client.get()
    expect(await codes('plain', 'plain', 'plain')).to.deep.equal([-32602, -32602, -32602])
    expect(seen).to.deep.equal([
      ['gold', 'first', client.id],
      ['plain', 'first', client.id],
    ])
    const plain = await client.get(withTier('plain').headers)
    host.runtime.resourceUpdated('note://gold')
    host.runtime.tools.add(defineTool({ name: 'late', handler: () => '' }))
    expect((await nextMessage(plain)).method).to.equal('notifications/tools/list_changed')
    golden.drop()
    expect(await codes('gold', undefined, 'banned', 'plain', 'gold')).to.deep.equal([
      'gold',
      -32602,
      -32603,
      -32602,
      'gold',
    ])
    expect(await codes('gold')).to.deep.equal(['gold'])
    expect(log.find(({ message }) => message === 'a call failed')).to.include({ route: '/' })
  })

  it('that throws opens no session: 500 with the request id and a log entry, without its text', async () => {
    const { url, log } = await start({
      sessions: { maxPerOwner: 1 },
      configureSession({ headers }) {
        if (headers['x-fail']) throw new Error('secret')
      },
    })
    const answer = await initialize(url, { headers: { 'X-Fail': 'yes' } })
    expect([answer.status, answer.headers['mcp-session-id']]).to.deep.equal([500, undefined])
    expect(answer.message).to.deep.equal({
      jsonrpc: '2.0',
      id: 'initialize',
      error: { code: -32603, message: 'Internal error' },
    })
    expect(log.map(({ err }) => (err as Error | undefined)?.message)).to.include('secret')
    expect((await initialize(url)).status, 'no session counts').to.equal(200)
  })

  it('receives a signal that aborts at the end of the session', async () => {
    const aborted = createGate<Error>()
    const { url } = await start({
      configureSession(_request, _session, { signal }) {
        signal.addEventListener('abort', () => aborted.open(signal.reason))
      },
    })
    await (await openSession(url)).end()
    expect(await aborted.opened).to.be.an('error')
  })

  it('provides the session id to handlers', async () => {
    const { url } = await start({})
    const client = await openSession(url)
    expect((await client.request('tools/call', { name: 'echo' })).message.result.content[0].text).to.equal(client.id)
  })
})

describe('runSession', () => {
  /** A host whose runSession writes down when it acts. */
  async function startTraced(config: Partial<Config> = {}) {
    const trace: string[] = []
    const ended = createGate()
    const started = await start({
      ...config,
      async runSession({ user }, { id }, run, { signal }) {
        trace.push(`before ${user?.subject} ${typeof id}`)
        try {
          await run()
        } finally {
          await nextTurn()
          await nextTurn()
          trace.push(`after, aborted ${signal.aborted}`)
          ended.open()
        }
      },
    })
    return { ...started, trace, ended: ended.opened }
  }
  const headers = { 'X-User': 'ada' }
  const WHOLE = ['before ada string', 'after, aborted true']

  it('runs before the first response and cleans up once after DELETE', async () => {
    const { url, trace, ended } = await startTraced()
    const client = await openSession(url, { headers })
    await client.request('ping')
    await client.request('tools/list')
    expect(trace).to.deep.equal(WHOLE.slice(0, 1))
    await client.end()
    await ended
    expect(trace).to.deep.equal(WHOLE)
  })

  it('cleans up after idle timeout', async () => {
    const { url, trace, ended } = await startTraced({ sessions: { idleTimeout: '60ms' } })
    const client = await openSession(url, { headers })
    await ended
    expect(trace).to.deep.equal(WHOLE)
    expect((await client.request('ping')).status).to.equal(404)
  })

  it('finishes its clean-up before the host is closed', async () => {
    const { url, host, trace } = await startTraced()
    await openSession(url, { headers })
    await host.close({ grace: 5_000 })
    expect(trace).to.deep.equal(WHOLE)
  })

  it('with an endless clean-up does not block shutdown', async () => {
    const { url, host } = await start({
      async runSession(_request, _session, run) {
        await run()
        await new Promise(() => undefined)
      },
    })
    await openSession(url)
    await host.close({ grace: 0 })
  })

  it('that throws or never calls run opens no session: 500 without its text, logged', async () => {
    const failing = await start({
      sessions: { maxPerOwner: 1 },
      runSession({ headers }, _session, run) {
        if (headers['x-how'] === 'throw') throw new Error('secret')
        return headers['x-how'] === 'return' ? undefined : run()
      },
    })
    for (const how of ['throw', 'return']) {
      const answer = await initialize(failing.url, { headers: { 'X-How': how } })
      expect([answer.status, answer.headers['mcp-session-id']], how).to.deep.equal([500, undefined])
      expect([answer.message.id, answer.message.error]).to.deep.equal([
        'initialize',
        { code: -32603, message: 'Internal error' },
      ])
    }
    const errors = failing.log.map(({ err }) => (err as Error | undefined)?.message)
    expect(errors).to.include.members(['secret', 'runSession returned without having called `run`'])
    expect((await initialize(failing.url)).status, 'no session counts').to.equal(200)
  })

  it('that fails later ends its session: calls are aborted, its id gets 404, logged', async () => {
    const { tool, call } = createPuppet()
    const failure = createGate()
    const { url, log } = await start({
      toolsets: { all: [tool] },
      routes: { '/': { toolsets: 'all' } },
      async runSession(_request, _session, run) {
        void run()
        await failure.opened
        throw new Error('the database is gone')
      },
    })
    const client = await openSession(url)
    const running = client.call('puppet', { name: 'left' })
    const { ctx } = await call('left')
    failure.open()
    expect(await readRest(await running)).to.deep.equal([])
    expect(ctx.signal.aborted).to.equal(true)
    expect((await client.request('ping')).status).to.equal(404)
    expect(log.find(({ message }) => message === 'runSession failed')?.['err']).to.be.an('error')
  })

  it('that fails directly after run leaves no session behind', async () => {
    const { url } = await start({
      sessions: { maxPerOwner: 1, maxIdle: 1 },
      runSession(_request, _session, run) {
        void run()
        throw new Error('at once')
      },
    })
    for (let count = 0; count < 4; count++) {
      const { status, headers } = await initialize(url)
      expect([status, headers['mcp-session-id']]).to.deep.equal([500, undefined])
    }
  })

  it('can return before run ends, and its session continues', async () => {
    const { url } = await start({ runSession: (_request, _session, run) => void run() })
    const client = await openSession(url)
    expect((await client.request('ping')).status).to.equal(200)
  })

  it('runs separately for each session', async () => {
    const lives: string[] = []
    const gates = [createGate(), createGate()]
    const { url } = await start({
      async runSession({ user }, _session, run) {
        lives.push(`+${user?.subject}`)
        await run()
        lives.push(`-${user?.subject}`)
        gates[lives.length - 3]?.open()
      },
    })
    const [ada, bob] = [await openSession(url, { headers }), await openSession(url, { headers: { 'X-User': 'bob' } })]
    await bob.end()
    await gates[0]?.opened
    expect((await ada.request('ping')).status).to.equal(200)
    await ada.end()
    await gates[1]?.opened
    expect(lives).to.deep.equal(['+ada', '+bob', '-bob', '-ada'])
  })
})
