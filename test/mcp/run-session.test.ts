import { expect } from 'chai'
import { type Config, defineTool } from '../../core/index.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { abandon, expectInternalError } from '../fixtures/one-call.ts'
import { createGate } from '../support/gate.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const trace: string[] = []
beforeEach(() => {
  trace.length = 0
})

const tool = defineTool({
  name: 'a',
  handler() {
    trace.push('a')
    return 'a'
  },
})
const start = (runSession: NonNullable<Config['runSession']>) =>
  startHost({
    toolsets: { all: [tool] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, who: identifyByHeader() },
    runSession,
  })

describe('runSession, for one request', () => {
  it('acts before and after the call, and sees who calls and where', async () => {
    const { url } = await start(async ({ user, route, headers }, { id }, run) => {
      trace.push(`before ${user?.subject} ${route.path} ${headers['mcp-name']} ${id}`)
      await run()
      trace.push('after')
    })
    const { message } = await modern(url, 'tools/call', { name: 'a' }, { headers: { 'X-User': 'ann' } })
    expect(message.result.content[0].text).to.equal('a')
    expect(trace).to.deep.equal(['before ann / a undefined', 'a', 'after'])
  })

  it('cleans up in a finally block where the call is refused, and the client gets that refusal', async () => {
    const { url } = await start(async (_request, _session, run) => {
      try {
        await run()
      } finally {
        trace.push('cleaned')
      }
    })
    expect((await modern(url, 'tools/call', { name: 'nope' })).message.error.code).to.equal(-32602)
    expect(trace).to.deep.equal(['cleaned'])
  })

  it('must call run: otherwise 500, logged', async () => {
    const { url, log } = await start(() => undefined)
    expectInternalError(await modern(url, 'tools/call', { name: 'a' }))
    expect(trace).to.deep.equal([])
    expect(log.map(({ err }) => (err as Error | undefined)?.message)).to.include(
      'runSession returned without having called `run`',
    )
  })

  it('runs the call once, however often it calls run', async () => {
    const { url } = await start(async (_request, _session, run) => {
      await Promise.all([run(), run()])
      await run()
    })
    expect((await modern(url, 'tools/call', { name: 'a' })).message.result.content[0].text).to.equal('a')
    expect(trace).to.deep.equal(['a'])
  })

  it('need not wait for run: the answer is the call’s, and so is a refusal', async () => {
    const { url } = await start((_request, _session, run) => void run())
    expect((await modern(url, 'tools/call', { name: 'a' })).message.result.content[0].text).to.equal('a')
    expect((await modern(url, 'tools/call', { name: 'nope' })).message.error.code).to.equal(-32602)
  })

  it('that throws, before the call or after it, answers 500 without its text', async () => {
    const before = await start(() => {
      throw new Error('secret')
    })
    expectInternalError(await modern(before.url, 'tools/call', { name: 'a' }))
    expect(trace).to.deep.equal([])
    const after = await start(async (_request, _session, run) => {
      await run()
      throw new Error('secret')
    })
    expectInternalError(await modern(after.url, 'tools/call', { name: 'a' }))
    const careless = await start((_request, _session, run) => {
      void run()
      throw new Error('secret')
    })
    expectInternalError(await modern(careless.url, 'tools/call', { name: 'nope' }))
  })

  it('has a signal that aborts when the client is gone', async () => {
    const [running, aborted] = [createGate(), createGate()]
    const { url } = await start(async (_request, _session, run, { signal }) => {
      const gone = new Promise(resolve => signal.addEventListener('abort', resolve))
      running.open()
      await gone
      aborted.open()
      await run()
    })
    await abandon(url, running.opened)
    await aborted.opened
  })
})
