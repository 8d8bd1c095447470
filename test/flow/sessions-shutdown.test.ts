import { expect } from 'chai'
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import { MAX_LISTENS_PER_CALLER, RETRY } from '../../core/transport.ts'
import { eventually } from '../support/eventually.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import {
  initialize,
  listen,
  nextMessage,
  openSession,
  postOpen,
  readRest,
  readWhole,
} from '../support/session-client.ts'
import { openSseSession } from '../support/sse-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const { tool: puppet, call } = createPuppet()
let readiness: InternalHost['checkReadiness']

/** Asks for readiness as a plugin does. */
const watch = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    readiness = host.checkReadiness
  },
})

const start = (clock?: ManualClock) =>
  startHost(
    {
      toolsets: { all: [puppet] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, watch: watch() },
    },
    undefined,
    clock && { clock },
  )

describe('graceful shutdown', () => {
  it('readiness fails while running calls finish', async () => {
    const { url, host } = await start()
    const client = await openSession(url)
    const running = client.call('puppet', { name: 'last' })
    const { finish } = await call('last')
    expect((await readiness()).ready).to.equal(true)
    const closing = host.close({ grace: 5_000 })
    expect(await readiness()).to.deep.equal({
      ready: false,
      checks: { accepting: false },
      reasons: { accepting: 'the host is closing' },
    })
    finish('done')
    expect((await readWhole(running)).message.result.content[0].text).to.equal('done')
    expect(await closing).to.deep.equal({ finished: 1, cancelled: 0 })
  })

  it('serves existing sessions until calls finish, rejects new sessions and fails readiness probes', async () => {
    const { url, host } = await startHost({
      toolsets: { all: [puppet] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, 'transport-sse': {}, health: {} },
    })
    const client = await openSession(url)
    const running = modern(url, 'tools/call', { name: 'puppet', arguments: { name: 'probed' } })
    const { finish } = await call('probed')
    const closing = host.close({ grace: 5_000 })
    const probe = await fetch(`${url}/health`)
    const { checks } = (await probe.json()) as { checks: object }
    expect([probe.status, checks]).to.deep.equal([503, { accepting: false }])
    expect((await client.request('ping')).status).to.equal(200)
    expect((await modern(url, 'tools/list')).status).to.equal(200)
    for (const refused of [await initialize(url), await fetch(`${url}/sse`)]) {
      const { headers } = refused
      const retry = headers instanceof Headers ? headers.get('retry-after') : headers['retry-after']
      expect([refused.status, retry]).to.deep.equal([503, '1'])
    }
    finish('')
    expect((await running).status).to.equal(200)
    expect(await closing).to.deep.equal({ finished: 3, cancelled: 0 })
    const after = await fetch(url).then(
      () => 'answered',
      () => 'refused',
    )
    expect(after).to.equal('refused')
  })

  it('accepts an elicitation response on a new connection', async () => {
    const { url, host } = await start()
    const client = await openSession(url, { capabilities: { elicitation: { form: {} } } })
    const running = client.call('puppet', { name: 'asking' })
    const { ctx, finish } = await call('asking')
    const closing = host.close({ grace: 5_000 })
    const asked = ctx.elicit({ message: 'Who?', requestedSchema: { type: 'object', properties: {} } })
    const stream = await running
    const question = await nextMessage(stream)
    const sent = await client.send({ id: question.id, result: { action: 'accept', content: {} } })
    expect(sent.status).to.equal(202)
    expect((await asked).action).to.equal('accept')
    finish('asked')
    expect((await readRest(stream)).at(-1)?.result.content[0].text).to.equal('asked')
    expect(await closing).to.deep.equal({ finished: 1, cancelled: 0 })
  })

  it('ends GET and subscriptions/listen streams that open during the drain within a second', async () => {
    const clock = createManualClock()
    const { url, host } = await start(clock)
    const client = await openSession(url)
    const running = client.call('puppet', { name: 'late streams' })
    const { finish } = await call('late streams')
    const closing = host.close({ grace: 5_000 })
    const get = await client.get()
    expect((await get.rest()).at(-1)).to.include({ retry: 1_000, data: undefined })
    const resumable = await client.get()
    const [primed] = await resumable.rest()
    const resumed = await client.get({ 'Last-Event-ID': String(primed?.id) })
    expect((await resumed.rest()).at(-1)).to.include({ retry: 1_000 })
    const listened = await listen(url, { toolsListChanged: true })
    await clock.advance(RETRY)
    expect((await readRest(listened)).at(-1)?.result.resultType).to.equal('complete')
    for (const stream of [get, resumable, resumed, listened]) expect(await stream.whole).to.equal(true)
    finish('')
    await readWhole(running)
    await closing
  })

  it('counts a subscription closed by its client during the drain once', async () => {
    const clock = createManualClock()
    const { url, host } = await start(clock)
    const running = modern(url, 'tools/call', { name: 'puppet', arguments: { name: 'left twice' } })
    const { finish } = await call('left twice')
    const closing = host.close({ grace: 10_000 })
    const left = await listen(url, {})
    left.drop()
    await clock.advance(1)
    const open = await Promise.all(Array.from({ length: MAX_LISTENS_PER_CALLER - 1 }, () => listen(url, {})))
    expect(new Set(open.map(({ status }) => status))).to.deep.equal(new Set([200]))
    // There is a place for one more once it is seen that the first has left.
    const last = await eventually(
      'a place',
      () => listen(url, {}),
      ({ status }) => status === 200,
    )
    expect((await listen(url, {})).status, 'none is left').to.equal(429)
    // Now the first, and no other, would have been ended.
    await clock.advance(RETRY - 1)
    expect((await listen(url, {})).status, 'and none came free').to.equal(429)
    for (const stream of [...open, last]) stream.drop()
    finish('')
    await running
    await closing
  })

  it('ends every GET stream at once with a retry hint', async () => {
    const { url, host } = await start()
    const client = await openSession(url)
    const streams = [await client.get(), await client.get()]
    const running = client.call('puppet', { name: 'meanwhile' })
    const { finish } = await call('meanwhile')
    const closing = host.close({ grace: 5_000 })
    for (const stream of streams) {
      const events = await stream.rest()
      expect(await stream.whole).to.equal(true)
      expect(events.at(-1)).to.include({ retry: 1_000, data: undefined })
    }
    finish('')
    await readWhole(running)
    await closing
  })

  for (const revision of ['2025-11-25', '2025-06-18']) {
    it(`lets a call of ${revision} finish on its stream within the grace period`, async () => {
      const { url, host } = await start()
      const client = await openSession(url, { revision })
      const running = client.call('puppet', { name: `streamed ${revision}` })
      const { ctx, finish } = await call(`streamed ${revision}`)
      ctx.progress(1)
      const stream = await running
      await nextMessage(stream)
      const closing = host.close({ grace: 5_000 })
      ctx.progress(2)
      finish('in time')
      const [progress, answer] = await readRest(stream)
      expect(progress?.params.progress).to.equal(2)
      expect(answer?.result.content[0].text).to.equal('in time')
      expect(await closing).to.deep.equal({ finished: 1, cancelled: 0 })
    })
  }

  const LOST = {
    code: -32603,
    message: 'The node was lost; the request may have run: repeat it if that is safe',
    data: { reason: 'node-lost', retryable: true },
  }

  for (const revision of ['2025-11-25', '2025-06-18']) {
    it(`cancels running calls after the grace period and notifies the client (${revision})`, async () => {
      const { url, host } = await start()
      const client = await openSession(url, { revision })
      const name = `endless ${revision}`
      const running = client.call('puppet', { name })
      const { ctx } = await call(name)
      ctx.progress(1)
      const stream = await running
      expect(await host.close({ grace: 20 })).to.deep.equal({ finished: 0, cancelled: 1 })
      expect(ctx.signal.aborted).to.equal(true)
      expect(ctx.signal.reason.message).to.equal('the server is shutting down')
      const [, answer, ...more] = await readRest(stream)
      expect(answer?.error).to.deep.include(LOST)
      expect(more).to.deep.equal([])
      expect(await stream.whole).to.equal(true)
    })
  }

  it('reports the cancellation as JSON when no event was sent', async () => {
    const { url, host } = await start()
    const client = await openSession(url)
    const running = readWhole(client.call('puppet', { name: 'in session' }))
    const modernRunning = modern(url, 'tools/call', { name: 'puppet', arguments: { name: 'without' } })
    await Promise.all([call('in session'), call('without')])
    expect(await host.close({ grace: 1 })).to.deep.equal({ finished: 0, cancelled: 2 })
    for (const { status, message } of await Promise.all([running, modernRunning])) {
      expect(status).to.equal(200)
      expect(message.error).to.deep.include(LOST)
    }
  })

  it('reports the cancellation on the stream of a request without a session', async () => {
    const { url, host } = await start()
    const { headers, body } = modernRequest(
      'tools/call',
      { name: 'puppet', arguments: { name: 'streaming' } },
      { meta: { progressToken: 'p' } },
    )
    const running = postOpen(url, body, headers as Record<string, string>)
    const { ctx } = await call('streaming')
    ctx.progress(1)
    const stream = await running
    await nextMessage(stream)
    expect(await host.close({ grace: 20 })).to.deep.equal({ finished: 0, cancelled: 1 })
    const [answer, ...more] = await readRest(stream)
    expect(answer?.error).to.deep.include(LOST)
    expect([more, await stream.whole]).to.deep.equal([[], true])
  })

  it('reports the cancellation once per call of a batch and skips answered calls', async () => {
    const { url, host } = await start()
    const client = await openSession(url, { revision: '2025-03-26' })
    const both = ['first', 'second'].map((name, index) => ({
      jsonrpc: '2.0',
      id: index + 1,
      method: 'tools/call',
      params: { name: 'puppet', arguments: { name } },
    }))
    const running = client.send(both)
    const [first] = await Promise.all([call('first'), call('second')])
    first.finish('answered')
    expect(await host.close({ grace: 300 })).to.deep.equal({ finished: 0, cancelled: 1 })
    const { messages } = await running
    const answers = messages.flat()
    expect(answers.map(({ id, result, error }) => [id, result?.content[0].text ?? error.code])).to.deep.equal([
      [1, 'answered'],
      [2, -32603],
    ])
  })

  it('reports the cancellation on the HTTP+SSE stream', async () => {
    const { url, host } = await startHost({
      toolsets: { all: [puppet] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, 'transport-sse': {} },
    })
    const client = await openSseSession(url)
    await client.post({ id: 7, method: 'tools/call', params: { name: 'puppet', arguments: { name: 'old' } } })
    await call('old')
    expect(await host.close({ grace: 20 })).to.deep.equal({ finished: 0, cancelled: 1 })
    const answer = await client.next()
    expect(answer.id).to.equal(7)
    expect(answer.error).to.deep.include(LOST)
    expect((await client.stream.rest()).at(-1)).to.include({ retry: 1_000 })
    expect(await client.stream.whole).to.equal(true)
  })

  it('ends every subscriptions/listen with an empty result without waiting', async () => {
    const { url, host } = await start()
    const streams = [await listen(url, { toolsListChanged: true }), await listen(url, {})]
    for (const stream of streams) await nextMessage(stream)
    expect(await host.close({ grace: 60_000 })).to.include({ cancelled: 0 })
    for (const stream of streams) {
      const [{ result }, ...more] = await readRest(stream)
      expect(result.resultType).to.equal('complete')
      expect(more).to.deep.equal([])
      expect(await stream.whole).to.equal(true)
    }
  })

  it('closes at once when all sessions are idle', async () => {
    const { url, host } = await start()
    for (let count = 0; count < 3; count++) await openSession(url)
    expect(await host.close({ grace: 60_000 })).to.deep.equal({ finished: 0, cancelled: 0 })
  })
})
