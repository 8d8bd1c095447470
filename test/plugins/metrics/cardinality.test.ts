// Metric cardinality: the number of series stays limited for any number of tools, clients and users.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import type { CallRecord } from '../../../core/plugin.ts'
import { META } from '../../../core/transport.ts'
import { createRequestCounts } from '../../../plugins/metrics/count-requests.ts'
import { createPluginMetrics } from '../../../plugins/metrics/plugin-metrics.ts'
import type { Metric } from '../../../plugins/metrics/series.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { recordOf } from '../../fixtures/records.ts'
import { eventually } from '../../support/eventually.ts'
import { createMeta, modern } from '../../support/rpc.ts'
import { createTestLog, stopHosts } from '../../support/start-host.ts'
import { startMetered } from './scrape.ts'

afterEach(stopHosts)

const MANY = 5_000

const countOf = (metrics: readonly Metric[], name: string) => metrics.find(one => one.name === name)?.values.length

describe('Metric cardinality', () => {
  it('is limited for any number of tools, clients, sessions and users', () => {
    const { observe, read } = createRequestCounts(100)
    for (let index = 0; index < MANY; index++) {
      observe(
        recordOf({
          item: { kind: 'tools', name: `tool-${index}` },
          client: { name: `client-${index}`, version: `${index}` },
          user: `user-${index}`,
          oauthClient: `oauth-${index}`,
          session: `session-${index}`,
          requestId: `request-${index}`,
          ip: `10.0.${index % 256}.${index >> 8}`,
          asked: ['sampling/createMessage', `made-up/${index}`],
        }),
      )
    }
    const metrics = read()
    const samples = metrics.reduce((sum, { values }) => sum + values.length, 0)
    // 1,000 tools and the others, each with 19 buckets, a sum and a count.
    expect(countOf(metrics, 'mcp_server_operation_duration_seconds')).to.equal(1_001 * 21)
    expect(countOf(metrics, 'mcp_host_client_calls_total')).to.equal(51)
    expect(countOf(metrics, 'mcp_host_client_questions_total')).to.equal(51 * 2)
    const calls = metrics.find(({ name }) => name === 'mcp_host_client_calls_total')?.values ?? []
    expect(calls.reduce((sum, { value }) => sum + value, 0)).to.equal(MANY)
    expect(samples).to.be.below(25_000)
  })

  it('reserves half of the client names for authenticated users', () => {
    const { observe, read } = createRequestCounts(10)
    const callBy = (name: string, subject?: string, outcome: CallRecord['outcome'] = 'ok') => {
      const user = subject === undefined ? undefined : { subject }
      const call = { headers: {}, user } as unknown as CallRecord['call']
      observe(recordOf({ call, outcome, client: { name, version: '1' } }))
    }
    for (let index = 0; index < 50; index++) callBy(`anyone-${index}`)
    for (let index = 0; index < 50; index++) callBy(`refused-${index}`, 'ada', 'error')
    for (let index = 0; index < 50; index++) callBy(`known-${index}`, 'ada')
    callBy('known-0')
    const calls = read().find(({ name }) => name === 'mcp_host_client_calls_total')?.values ?? []
    const counts = Object.fromEntries(calls.map(({ labels, value }) => [labels['client'], value]))
    const named = (name: string) => Object.keys(counts).filter(key => key.startsWith(name)).length
    expect([named('anyone'), named('refused'), named('known'), counts['known-0']]).to.deep.equal([5, 0, 5, 2])
    expect(counts['_OTHER']).to.equal(45 + 50 + 45)
  })

  it('is limited for plugin metrics with invalid labels', () => {
    const log = createTestLog()
    const { registrar, read } = createPluginMetrics(log, new Set())
    const tell = registrar.counter({ name: 'jobs_total', help: 'Jobs.', labels: ['who'] })
    for (let index = 0; index < MANY; index++) tell(1, { who: `user-${index}` })
    registrar.gauge({ name: 'jobs', help: 'Jobs.', labels: ['who'] }, () =>
      [...Array(5_000)].map((_, index) => [1, { who: `user-${index}` }] as const),
    )
    const [jobs, gauge] = read()
    expect(jobs?.values).to.have.length(1_001)
    expect(jobs?.values.find(({ labels }) => labels['who'] === '_OTHER')?.value).to.equal(MANY - 1_000)
    expect(gauge?.values).to.have.length(1_000)
  })

  const invented = 10

  it('stays the same after many invented tools, clients, users, methods and paths', async () => {
    const identifies = plugin(
      host =>
        host.authenticate((ctx, next) => {
          const facts = { scopes: [], roles: [], claims: {} }
          ctx.state.user = { issuer: 'test', subject: ctx.get('x-user'), clientId: ctx.get('x-user'), ...facts }
          return next()
        }),
      { provides: ['user'] },
    )
    const metered = await startMetered(
      {
        toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
        routes: { '/mcp': { toolsets: 'all' } },
        plugins: { identifies },
      },
      { clients: 3 },
    )
    const ask = async (index: number) => {
      const meta = createMeta({ [META.clientInfo]: { name: `client-${index}`, version: `${index}` } })
      const options = { meta, headers: { 'x-user': `user-${index}` } }
      const url = `${metered.url}/mcp`
      await modern(url, 'tools/call', { name: 'say' }, options)
      await modern(url, 'tools/call', { name: `tool-${index}` }, options)
      await modern(url, `method/${index}`, {}, options)
      await fetch(`${metered.url}/path-${index}`, { method: 'GET' })
    }
    for (let index = 0; index < 4; index++) await ask(index)
    const seen = async (count: number) => {
      await eventually(`${count} calls`, async () => {
        const calls = (await metered.scrape()).filter(({ name }) => name === 'mcp_host_client_calls_total')
        return calls.reduce((sum, { value }) => sum + value, 0) === count
      })
      return (await metered.scrape()).length
    }
    const before = await seen(4 * 3)
    for (let index = 4; index < 4 + invented; index += 10)
      await Promise.all([...Array(10)].map((_, more) => ask(index + more)))
    const after = await seen((4 + invented) * 3)
    expect(after).to.equal(before)
  })
})
