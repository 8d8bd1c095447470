// Tests hosts with misbehaving tools: event loop blocking, ignored abort signals, timeouts, log messages and readiness.
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
import { type LogLine, startHost, stopHosts, type TestConfig } from '../support/start-host.ts'

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
  defineTool({ name: 'second', handler: () => block(1_000) }),
  defineTool({ name: 'again', handler: () => block(250) }),
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

const serve = (more: Partial<TestConfig['tools']> = {}) => {
  clock = createManualClock()
  return startHost(
    {
      toolsets: { all: tools },
      routes: { '/': { toolsets: 'all' } },
      tools: { stallWarning: '100ms', stallUnready: 'off', ...more },
      plugins: { 'transport-streamable': {}, health: {} },
    },
    undefined,
    { clock },
  )
}

const call = (url: string, name: string) => modern(url, 'tools/call', { name })
const textOf = ({ message }: Awaited<ReturnType<typeof call>>): string => message.result?.content[0]?.text
const stallsIn = (log: readonly LogLine[]) =>
  log.filter(({ message }) => /held the event loop|event loop was held/.test(message ?? ''))

interface Ready {
  readonly status: number
  readonly checks: Readonly<Record<string, boolean>>
  readonly reasons: Readonly<Record<string, string>> | undefined
}
async function askReady(url: string): Promise<Ready> {
  const response = await fetch(`${url}/readyz`)
  return { ...((await response.json()) as Omit<Ready, 'status'>), status: response.status }
}

describe('misbehaving tools: timeouts and event loop stalls', () => {
  after(() => {
    released.open()
    patience.open()
    return stopHosts()
  })

  it('logs the tool that blocks the event loop; a timeout cannot stop it', async () => {
    const { url, log } = await serve()
    expect(textOf(await call(url, 'second'))).to.equal('blocked 1000 ms')
    expect(stallsIn(log).map(({ name }) => name)).to.deep.equal(['second'])
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
    const { url, log } = await serve()
    // Calls that wait the whole time are there whenever the other one computes, and are not what does.
    const waiting = call(url, 'patient')
    const endless = call(url, 'endless')
    expect(textOf(await call(url, 'fine'))).to.equal('fine')
    await clock.advance(2_000)
    expect(textOf(await endless)).to.match(/^endless.*2000 ms$/)
    const stalls = stallsIn(log)
    expect(stalls.length).to.be.at.least(1)
    for (const line of stalls)
      expect([line['name'], ...((line['among'] ?? []) as string[])].join()).to.include('endless')
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
    expect(told().map(({ level, name, running, limit }) => [level, name, running, limit])).to.deep.equal(
      [1, 2, 4, 8].map(running => ['warn', 'deaf', running, 50]),
    )
  })

  it('readiness fails and names the tool that blocks the event loop repeatedly', async () => {
    const { url } = await serve({ stallUnready: '600ms' })
    expect((await askReady(url)).checks).to.deep.equal({ accepting: true, 'event loop': true })
    await call(url, 'again')
    await call(url, 'again')
    // Two are a chance.
    expect((await askReady(url)).status).to.equal(200)
    await call(url, 'again')
    const { status, checks, reasons } = await askReady(url)
    expect([status, checks]).to.deep.equal([503, { accepting: true, 'event loop': false }])
    expect(reasons?.['event loop']).to.match(/again: \d+\.\d.*10 s$/)
    // Who comes all the same is served.
    expect(textOf(await call(url, 'fine'))).to.equal('fine')
  })

  it('startup fails when stallUnready exceeds the measured period', async () => {
    const error: unknown = await serve({ stallUnready: '11s' }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(String(error)).to.match(/tools\.stallUnready.*10 s.*10s/)
  })

  it('does not affect readiness when switched off', async () => {
    for (const more of [{ stallUnready: 'off' }, { stallWarning: 'off', stallUnready: '10ms' }] as const) {
      const { url } = await serve(more)
      for (let stall = 0; stall < 3; stall++) await call(url, 'brief_limit')
      expect(await askReady(url)).to.deep.include({ status: 200, checks: { accepting: true } })
    }
  })
})
