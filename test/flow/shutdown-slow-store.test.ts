// Tests graceful shutdown with a slow event store.
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { createUnevenStore } from '../support/delayed-store.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { openSession, readRest } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { storeWith } from '../support/store-plugin.ts'

afterEach(stopHosts)

const { tool: puppet, call } = createPuppet()
/** How long the store takes for whatever it is asked, milliseconds. */
const SLOW = 200

/** What came on the stream of a call that was cancelled after the grace period, and whether the stream was whole. */
async function toldAfter(grace: number) {
  const { url, host } = await startHost({
    toolsets: { all: [puppet] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, slow: storeWith(createUnevenStore(() => pause(SLOW))) },
  })
  const client = await openSession(url)
  const name = `after ${grace}`
  const running = client.call('puppet', { name })
  const { ctx } = await call(name)
  ctx.progress(1)
  const stream = await running
  expect(await host.close({ grace })).to.deep.equal({ finished: 0, cancelled: 1 })
  const messages = await readRest(stream)
  return { answers: messages.flatMap(({ error }) => error?.data.reason ?? []), whole: await stream.whole }
}

describe('graceful shutdown with a slow event store', () => {
  it('notifies clients after the grace period', async () => {
    expect(await toldAfter(20)).to.deep.equal({ answers: ['node-lost'], whole: true })
  })

  it('ends at once with a grace period of 0', async () => {
    expect(await toldAfter(0)).to.deep.equal({ answers: [], whole: false })
  })
})
