// Tests the runSession hook around single requests.
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

describe('runSession for one request', () => {
  it('runs code before and after the call with the caller and route', async () => {
    const { url } = await start(async ({ user, route, headers }, { id }, run) => {
      trace.push(`before ${user?.subject} ${route.path} ${headers['mcp-name']} ${id}`)
      await run()
      trace.push('after')
    })
    const { message } = await modern(url, 'tools/call', { name: 'a' }, { headers: { 'X-User': 'ann' } })
    expect(message.result.content[0].text).to.equal('a')
    expect(trace).to.deep.equal(['before ann / a undefined', 'a', 'after'])
  })

  it('runs finally blocks of a rejected call and returns its error', async () => {
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

  it('responds 500 and logs an error if run is not called', async () => {
    const { url, log } = await start(() => undefined)
    expectInternalError(await modern(url, 'tools/call', { name: 'a' }))
    expect(trace).to.deep.equal([])
    expect(log.map(({ err }) => (err as Error | undefined)?.message)).to.match(/runSession.*`run`/)
  })

  it('runs the call once for repeated run() calls', async () => {
    const { url } = await start(async (_request, _session, run) => {
      await Promise.all([run(), run()])
      await run()
    })
    expect((await modern(url, 'tools/call', { name: 'a' })).message.result.content[0].text).to.equal('a')
    expect(trace).to.deep.equal(['a'])
  })

  it('returns the call result or error without awaiting run', async () => {
    const { url } = await start((_request, _session, run) => void run())
    expect((await modern(url, 'tools/call', { name: 'a' })).message.result.content[0].text).to.equal('a')
    expect((await modern(url, 'tools/call', { name: 'nope' })).message.error.code).to.equal(-32602)
  })

  it('responds 500 without the message of an error thrown before or after the call', async () => {
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

  it('receives a signal that aborts on client disconnect', async () => {
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
