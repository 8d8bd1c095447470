// Tests hosts with misbehaving tools: event loop blocking, ignored abort signals, timeouts and log messages.
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { HANDSHAKE_REVISIONS } from '../../core/transport.ts'
import { compute } from '../support/compute.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const released = createGate()
let deaf = 0
const patience = createGate()
/** The clock of the host that runs now. */
let clock: ManualClock
/** Blocks the event loop, by the host's clock. */
const block = (ms: number) => {
  clock.block(ms)
  return `blocked ${ms} ms`
}
const tools = [
  defineTool({ name: 'fine', handler: () => 'fine' }),
  defineTool({ name: 'brief_limit', timeout: '50ms', handler: () => block(150) }),
  defineTool({
    name: 'endless',
    timeout: '2s',
    async handler(_, { signal }) {
      block(120)
      while (!signal.aborted) {
        compute(1)
        await turn()
      }
    },
  }),
  defineTool({
    name: 'deaf',
    timeout: '50ms',
    async handler() {
      deaf++
      await released.opened
      deaf--
    },
  }),
  defineTool({
    name: 'computes_first',
    timeout: '400ms',
    async handler() {
      block(250)
      await released.opened
    },
  }),
  defineTool({ name: 'patient', handler: () => patience.opened.then(() => 'patient') }),
]

const serve = () => {
  clock = createManualClock()
  return startHost(
    {
      toolsets: { all: tools },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {} },
    },
    undefined,
    { clock },
  )
}

const call = (url: string, name: string) => modern(url, 'tools/call', { name })
const textOf = ({ message }: Awaited<ReturnType<typeof call>>): string => message.result?.content[0]?.text
describe('misbehaving tools: timeouts and a blocked event loop', () => {
  after(() => {
    released.open()
    patience.open()
    return stopHosts()
  })

  it('does not stop a tool that blocks the event loop at its timeout', async () => {
    const { url } = await serve()
    expect(textOf(await call(url, 'brief_limit'))).to.equal('blocked 150 ms')
  })

  it('counts time spent blocking the event loop against the timeout of the call', async () => {
    const { url } = await serve()
    const called = call(url, 'computes_first')
    await eventually('it waits, with what is left of its 400 ms', () => clock.pending().includes(150))
    await clock.advance(150)
    expect(textOf(await called)).to.match(/^computes_first.*400 ms$/)
  })

  it('stops an endless tool that yields at its timeout and serves other calls meanwhile', async () => {
    const { url } = await serve()
    // Calls that wait the whole time are there whenever the other one computes, and are not what does.
    const waiting = call(url, 'patient')
    const endless = call(url, 'endless')
    expect(textOf(await call(url, 'fine'))).to.equal('fine')
    await clock.advance(2_000)
    expect(textOf(await endless)).to.match(/^endless.*2000 ms$/)
    patience.open()
    expect(textOf(await waiting)).to.equal('patient')
  })

  it('answers at the timeout in every protocol version when a tool ignores its abort signal', async () => {
    const { url, log } = await serve()
    async function timeOut(called: Promise<Pick<Awaited<ReturnType<typeof call>>, 'message'>>) {
      const before = deaf
      await eventually('its handler runs', () => deaf > before)
      await clock.advance(50)
      expect((await called).message.result.content[0].text).to.include('stopped after 50 ms')
    }
    for (const revision of HANDSHAKE_REVISIONS) {
      const session = await openSession(url, { revision })
      await timeOut(session.request('tools/call', { name: 'deaf', arguments: {} }))
    }
    while (deaf < 10) await timeOut(call(url, 'deaf'))
    await clock.advance(2_000)
    const told = () => log.filter(({ message }) => message?.includes('it ignores its signal'))
    expect(told().map(({ level, name, limit }) => [level, name, limit])).to.deep.equal(
      Array.from({ length: 10 }, () => ['warn', 'deaf', 50]),
    )
  })
})
