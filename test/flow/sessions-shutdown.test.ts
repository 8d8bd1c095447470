import { expect } from 'chai'
import { definePlugin, type PluginHost } from '../../core/index.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { modern } from '../support/rpc.ts'
import { listen, nextMessage, openSession, readWhole, restOf } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const { tool: puppet, call } = createPuppet()
let readiness: PluginHost['readiness']

/** Asks for readiness as a plugin does. */
const watch = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    readiness = host.readiness
  },
})

const start = () =>
  startHost({
    toolsets: { all: [puppet] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, watch: watch() },
  })

describe('a host that closes', () => {
  it('is not ready any more, while what runs still does', async () => {
    const { url, host } = await start()
    const client = await openSession(url)
    const running = client.call('puppet', { name: 'last' })
    const { finish } = await call('last')
    expect((await readiness()).ready).to.equal(true)
    const closing = host.close({ grace: 5_000 })
    expect(await readiness()).to.deep.equal({ ready: false, checks: { accepting: false } })
    finish('done')
    expect((await readWhole(running)).message.result.content[0].text).to.equal('done')
    expect(await closing).to.deep.equal({ finished: 1, cancelled: 0 })
  })

  it('tells probes that it is not ready, and new requests to come back, until nothing runs any more', async () => {
    const { url, host } = await startHost({
      toolsets: { all: [puppet] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, health: {} },
    })
    const running = modern(url, 'tools/call', { name: 'puppet', arguments: { name: 'probed' } })
    const { finish } = await call('probed')
    const closing = host.close({ grace: 5_000 })
    const probe = await fetch(`${url}/health`)
    const { checks } = (await probe.json()) as { checks: object }
    expect([probe.status, checks]).to.deep.equal([503, { accepting: false }])
    const refused = await modern(url, 'tools/list')
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '1'])
    finish('')
    expect((await running).status).to.equal(200)
    expect(await closing).to.deep.equal({ finished: 1, cancelled: 0 })
    const after = await fetch(url).then(
      () => 'answered',
      () => 'refused',
    )
    expect(after).to.equal('refused')
  })

  it('ends every GET stream at once, with a hint when to come back', async () => {
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
    it(`lets a call of ${revision} finish on the stream that it has, up to the grace period`, async () => {
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
      const [progress, answer] = await restOf(stream)
      expect(progress?.params.progress).to.equal(2)
      expect(answer?.result.content[0].text).to.equal('in time')
      expect(await closing).to.deep.equal({ finished: 1, cancelled: 0 })
    })
  }

  it('cancels what still runs when the grace period is over, and says so', async () => {
    const { url, host } = await start()
    const client = await openSession(url)
    const running = client.call('puppet', { name: 'endless' })
    const { ctx } = await call('endless')
    expect(await host.close({ grace: 20 })).to.deep.equal({ finished: 0, cancelled: 1 })
    expect(ctx.signal.aborted).to.equal(true)
    expect(ctx.signal.reason.message).to.equal('the server is shutting down')
    expect(await restOf(await running)).to.deep.equal([])
  })

  it('ends every subscriptions/listen with its own empty result, and does not wait for them', async () => {
    const { url, host } = await start()
    const streams = [await listen(url, { toolsListChanged: true }), await listen(url, {})]
    for (const stream of streams) await nextMessage(stream)
    expect(await host.close({ grace: 60_000 })).to.include({ cancelled: 0 })
    for (const stream of streams) {
      const [{ result }, ...more] = await restOf(stream)
      expect(result.resultType).to.equal('complete')
      expect(more).to.deep.equal([])
      expect(await stream.whole).to.equal(true)
    }
  })

  it('with sessions that idle closes at once', async () => {
    const { url, host } = await start()
    for (let count = 0; count < 3; count++) await openSession(url)
    expect(await host.close({ grace: 60_000 })).to.deep.equal({ finished: 0, cancelled: 0 })
  })
})
