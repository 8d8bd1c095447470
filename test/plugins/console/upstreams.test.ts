// Tests upstream servers in the console: states, errors with their time, withheld items, and commands.
import { expect } from 'chai'
import { definePrompt, defineTool } from '../../../core/index.ts'
import { type CallRow, PATHS, type UpstreamRow, type Warning } from '../../../plugins/console/api.ts'
import { mergeUpstreams } from '../../../plugins/console/merge.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { startConsole } from './console-client.ts'

const KEY = 'planted-key-of-the-url'
const handler = () => 'Hello'

describe('Upstream servers in the console', () => {
  after(stopHosts)

  const startOrigin = () =>
    startHost({ toolsets: { all: [defineTool({ name: 'read', handler })] }, routes: { '/': { toolsets: 'all' } } })

  it('have states, errors with their time, and withheld items', async () => {
    const origin = await startOrigin()
    const { url, get } = await startConsole({
      toolsets: {},
      routes: { '/': { toolsets: ['good', 'strict'] }, '/strict': { toolsets: ['strict', 'gone'] } },
      plugins: {
        upstream: {
          servers: {
            good: { url: `${origin.url}/?key=${KEY}` },
            strict: { url: `${origin.url}/`, newTools: 'withhold' },
            gone: { command: process.execPath, args: ['-e', `process.exit(1) // ${KEY}`] },
          },
        },
      },
    })
    const read = async () => {
      const { body, text } = await get(PATHS.upstreams)
      expect(text).not.to.contain(KEY)
      const rows: UpstreamRow[] = body.servers
      expect(rows.map(({ name }) => name)).to.deep.equal(['gone', 'good', 'strict'])
      const [gone, good, strict] = rows as [UpstreamRow, UpstreamRow, UpstreamRow]
      return { gone, good, strict, commands: body.commands }
    }

    const { gone, good, strict, commands } = await read()
    expect(good).to.include({ state: 'up', transport: 'http', era: 'modern', tools: 1, withheldCount: 0 })
    expect(good.routes).to.deep.equal(['/'])
    expect(good).not.to.have.property('lastError')
    expect(strict).to.include({ state: 'up', tools: 0, withheldCount: 1 })
    expect(strict.withheld[0]?.[0]).to.equal('tool read')
    expect(strict.routes).to.deep.equal(['/', '/strict'])
    expect(gone.state).to.be.oneOf(['down', 'crash loop'])
    expect(gone).to.include({ transport: 'stdio', target: process.execPath })
    expect(gone.lastError?.at).to.be.at.least(gone.since)
    expect(commands[0].command).to.match(/ doctor --config FILE$/)

    await origin.host.close({ grace: 0 })
    await modern(url, 'tools/call', { name: 'good_read' })
    const down = (await read()).good
    expect(down.state).to.equal('down')
    expect(down.lastError?.reason).to.be.a('string')
    expect(down.nextAttempt).to.be.above(down.since)
    const { hits } = (await get(`${PATHS.search}?q=good`)).body
    expect(hits.map(({ kind }: { kind: string }) => kind)).to.include('upstream')
  })

  it('are in the records of their calls, with the time that they took', async () => {
    const origin = await startOrigin()
    const { url, get } = await startConsole({
      toolsets: { own: [defineTool({ name: 'local', handler })] },
      routes: { '/': { toolsets: ['own', 'far'] } },
      plugins: { upstream: { servers: { far: { url: `${origin.url}/` } } } },
    })
    await modern(url, 'tools/call', { name: 'far_read' })
    await modern(url, 'tools/call', { name: 'local' })
    const [local, far]: CallRow[] = (await get(PATHS.calls)).body.calls
    expect(local).to.include({ name: 'local' }).and.not.to.have.property('upstream')
    expect(far?.upstream).to.include({ name: 'far', tool: 'read' })
    expect(far?.upstream?.ms).to.be.a('number')
  })

  it('keep the last error after they are up again', async () => {
    const origin = await startOrigin()
    const { port } = new URL(origin.url)
    const { url, get } = await startConsole({
      toolsets: {},
      routes: { '/': { toolsets: ['far'] } },
      plugins: { upstream: { servers: { far: { url: `${origin.url}/` } } } },
    })
    await origin.host.close({ grace: 0 })
    await modern(url, 'tools/call', { name: 'far_read' })
    await startHost({
      http: { port: Number(port) },
      toolsets: { all: [defineTool({ name: 'read', handler })] },
      routes: { '/': { toolsets: 'all' } },
    })
    await eventually('the server is up', async () => {
      const { servers } = (await get(PATHS.upstreams)).body
      return servers[0].state === 'up' && servers[0].lastError !== undefined
    })
  })

  it('are counted, also those above the maximum number of rows', () => {
    const value = { servers: Array.from({ length: 1_001 }, (_, index) => ({ name: `s${index}` })) }
    const { servers, total } = mergeUpstreams([{ name: 'a', value }])
    expect(servers).to.have.length(1_000)
    expect(total).to.equal(1_001)
  })

  it('have warnings with reason and fix, which end with their cause', async () => {
    const origin = await startOrigin()
    const { port } = new URL(origin.url)
    const clock = createManualClock()
    const { get } = await startConsole(
      {
        toolsets: {},
        routes: { '/': { toolsets: ['far'] } },
        plugins: { upstream: { servers: { far: { url: `${origin.url}/`, newTools: 'withhold' } } } },
      },
      {},
      { clock },
    )
    const read = async () => {
      const { warnings }: { warnings: Warning[] } = (await get(PATHS.overview)).body
      for (const { reason, fix } of warnings) expect([reason, fix]).to.not.include(undefined)
      return warnings.map(({ code }) => code)
    }
    expect(await read()).to.deep.equal(['MH2945'])
    const [route] = (await get(PATHS.routes)).body.routes
    expect(route).to.include({ tools: 0, withheld: 1 })
    await origin.host.close({ grace: 0 })
    await clock.advance(360_000)
    await eventually('the outage is a warning', async () => (await read()).includes('MH2942'))
    await startHost({
      http: { port: Number(port) },
      toolsets: { all: [definePrompt({ name: 'greet', handler })] },
      routes: { '/': { toolsets: 'all' } },
    })
    await clock.advance(60_000)
    await eventually('the outage has ended', async () => (await read()).join() === 'MH2945')
  })

  it('are not available without the plugin', async () => {
    const { get } = await startConsole({ toolsets: { none: [] }, routes: { '/': { toolsets: 'none' } } })
    expect((await get(PATHS.upstreams)).body).to.include({ available: false })
  })
})
