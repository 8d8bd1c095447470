// Metrics that the host and its plugins register: order, merging, histograms and invalid values.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { createMetrics } from '../../../core/kernel/metrics.ts'
import { createPluginMetrics } from '../../../plugins/metrics/plugin-metrics.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { openSession } from '../../support/session-client.ts'
import { createTestLog, stopHosts } from '../../support/start-host.ts'
import { startMetered } from './scrape.ts'

afterEach(stopHosts)

const toolsets = { all: [defineTool({ name: 'say', handler: () => 'said' })] }
const routes = { '/mcp': { toolsets: 'all' } }

function createRead() {
  const figures = createMetrics()
  const log = createTestLog()
  const { lines } = log
  const { registrar, read } = createPluginMetrics(log, new Set(['taken_total']))
  const named = (name: string) => read().find(metric => metric.name === name)
  return { figures, registrar, read, named, lines, readNow: () => figures.readBy(registrar) }
}

describe('Registered metrics', () => {
  it('are read if registered before or after the reader', () => {
    const { figures, readNow, named } = createRead()
    const early = figures.counter({ name: 'early_total', help: 'Early.', labels: ['kind'] })
    early(5, { kind: 'unheard' })
    readNow()
    const late = figures.counter({ name: 'late_total', help: 'Late.' })
    early(2, { kind: 'a' })
    early(3, { kind: 'a' })
    late(1)
    expect(named('early_total')?.values).to.deep.equal([{ labels: { kind: 'a' }, value: 5 }])
    expect(named('late_total')?.values).to.deep.equal([{ labels: {}, value: 1 }])
  })

  it('with the same name from several plugins are summed', () => {
    const { figures, readNow, named } = createRead()
    readNow()
    const jobs = { name: 'jobs_total', help: 'Jobs.', labels: ['kind'] }
    figures.counter(jobs)(1, { kind: 'a' })
    figures.counter(jobs)(2, { kind: 'a' })
    figures.gauge({ name: 'jobs', help: 'Jobs.' }, () => 4)
    figures.gauge({ name: 'jobs', help: 'Jobs.' }, () => 5)
    const up = { name: 'mcp_host_redis_up', help: 'Up.', labels: ['redis'] }
    figures.gauge(up, () => [[1, { redis: 'main' }]])
    figures.gauge(up, () => [[0, { redis: 'main' }]])
    expect(named('jobs_total')?.values.map(({ value }) => value)).to.deep.equal([3])
    expect(named('jobs')?.values.map(({ value }) => value)).to.deep.equal([9])
    expect(named('mcp_host_redis_up')?.values.map(({ value }) => value)).to.deep.equal([0])
  })

  it('support histograms with buckets', () => {
    const { figures, readNow, named } = createRead()
    readNow()
    figures.histogram({ name: 'page_bytes', help: 'Pages.' })(300)
    figures.histogram({ name: 'wait_seconds', help: 'Waits.' })(0.003)
    const first = (name: string) => named(name)?.values.find(({ value }) => value === 1)?.labels['le']
    expect(first('page_bytes')).to.equal('1024')
    expect(first('wait_seconds')).to.equal('0.005')
  })

  it('record nothing without a reader', () => {
    const { figures, registrar } = createRead()
    const tell = figures.counter({ name: 'jobs_total', help: 'Jobs.', labels: ['kind'] })
    let asked = 0
    figures.gauge({ name: 'jobs', help: 'Jobs.' }, () => ++asked)
    for (let index = 0; index < 1_000; index++) tell(1, { kind: `${index}` })
    figures.readBy(registrar)
    expect(asked).to.equal(0)
  })

  it('with invalid values are omitted with a log line', () => {
    const { figures, readNow, read, lines } = createRead()
    readNow()
    figures.counter({ name: 'my-jobs', help: 'Jobs.' })(1)
    figures.counter({ name: 'taken_total', help: 'Jobs.' })(1)
    figures.histogram({ name: 'x_seconds', help: 'X.', labels: ['le'] })(1, { le: '1' })
    figures.gauge({ name: 'broken', help: 'Broken.' }, () => {
      throw new Error('no figures today')
    })
    figures.gauge({ name: 'fine', help: 'Fine.' }, () => 1)
    figures.counter({ name: 'fine', help: 'Fine.' })(1)
    const count = figures.counter({ name: 'jobs_total', help: 'Jobs.', labels: ['kind'] })
    count(Number.NaN)
    count(-1)
    count(1, { kind: 'a', other: 'unknown' })
    expect(read().map(({ name, values }) => [name, ...values.map(({ value }) => value)])).to.deep.equal([
      ['broken'],
      ['fine', 1],
      ['jobs_total', 1],
    ])
    expect(lines.map(({ figure, problem }) => [figure, problem])).to.deep.equal([
      ['my-jobs', 'a name is made of letters, digits and _'],
      ['taken_total', 'another metric has this name'],
      ['x_seconds', '"le" is not a label name'],
      ['fine', 'it is registered as gauge and as counter'],
      ['broken', 'no figures today'],
    ])
  })

  it('of the host and of plugins set up earlier or later are present', async () => {
    const jobs = plugin(host => host.metrics.gauge({ name: 'my_jobs', help: 'Jobs.' }, () => 7))
    const metered = await startMetered({ toolsets, routes, plugins: { aaa: jobs, zzz: jobs } })
    expect(await metered.one('my_jobs')).to.equal(14)
    const session = await openSession(`${metered.url}/mcp`, { revision: '2025-06-18' })
    const labels = { route: '/mcp', protocol_version: '2025-06-18', transport: 'transport-streamable' }
    expect(await metered.one('mcp_host_sessions', labels)).to.equal(1)
    await session.end()
    const lived = { mcp_protocol_version: '2025-06-18' }
    await eventually('the end of the session', async () => {
      return (await metered.one('mcp_server_session_duration_seconds_count', lived)) === 1
    })
    expect(await metered.one('mcp_host_sessions', labels)).to.equal(undefined)
    expect(await metered.one('mcp_host_waiting_bytes')).to.be.a('number')
    expect(await metered.one('mcp_host_sessions_evicted_total')).to.equal(0)
    expect(await metered.one('mcp_host_ready', { check: 'accepting' })).to.equal(1)
  })

  it('report a hanging readiness condition as failed without delaying the scrape', async () => {
    const check = createGate()
    const hangs = plugin(host => {
      host.readiness('hangs', () => {
        check.open()
        return new Promise(() => undefined)
      })
    })
    const clock = createManualClock()
    const metered = await startMetered({ toolsets, routes, plugins: { hangs } }, {}, { clock })
    const reading = metered.one('mcp_host_ready', { check: 'hangs' })
    await check.opened
    await clock.advance(2_000)
    expect(await reading).to.equal(0)
  })
})
