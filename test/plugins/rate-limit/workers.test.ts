// Rate limits of several processes that share counters through the hub of `--workers`.
import { expect } from 'chai'
import type { RateLimitOptions } from '../../../plugins/rate-limit/index.ts'
import { stopHosts } from '../../support/start-host.ts'
import { startNeighbours, type TestNeighbour } from '../../support/worker-processes.ts'
import { atOnce, startLimited, statuses } from './limited-host.ts'

const UNCOUNTED = 'rate limits cannot be counted in the primary process'

async function startTwo(options: RateLimitOptions) {
  const neighbours = startNeighbours(2)
  const start = (index: number) => startLimited(options, {}, { neighbours: neighbours[index] as TestNeighbour })
  const nodes = [await start(0), await start(1)] as const
  return { neighbours, nodes, at: (index: number) => nodes[index % 2] as (typeof nodes)[0] }
}

describe('rate-limit: counts in the primary process', () => {
  afterEach(stopHosts)

  it('enforce exact limits across workers for addresses, users, clients and tools', async () => {
    const limits = { address: '200/1h', user: '30/1h', client: '20/1h', tools: { 'search*': '10/1h' } }
    const { at } = await startTwo(limits)
    const all = (headers: Record<string, string>, tool: string, count: number) =>
      atOnce(count, index => at(index).call(headers, tool))
    const ann = { 'X-User': 'ann' }
    expect(statuses(await all(ann, 'search_web', 15))).to.deep.equal({ 200: 10, 429: 5 })
    expect(statuses(await all(ann, 'say', 20))).to.deep.equal({ 200: 15, 429: 5 })
    const client = { 'X-User': 'bob', 'X-Client': 'desktop' }
    expect(statuses(await all(client, 'say', 25))).to.deep.equal({ 200: 20, 429: 5 })
    const left = 200 - 15 - 20 - 25
    const everybody = atOnce(left + 10, index => at(index).call({ 'X-User': `user-${index % 9}` }))
    expect(statuses(await everybody)).to.deep.equal({ 200: left, 429: 10 })
  })

  it('report what is left and when the window ends', async () => {
    const { nodes } = await startTwo({ user: '2/1h' })
    expect((await nodes[0].call()).headers.get('ratelimit')).to.equal('"user";r=1;t=3600')
    expect((await nodes[1].call()).headers.get('ratelimit')).to.match(/^"user";r=0;t=3[56]\d\d$/)
    const refused = await nodes[0].call()
    expect([refused.status, refused.message.error.data.limit]).to.deep.equal([429, 'user'])
  })

  it('are skipped with one warning if the primary process is gone', async () => {
    const { nodes, neighbours } = await startTwo({ address: '5/1h', tools: { say: '5/1h' } })
    neighbours[0]?.end()
    expect(statuses(await atOnce(10, () => nodes[0].call()))).to.deep.equal({ 200: 10 })
    const lines = nodes[0].log.filter(({ message }) => message === UNCOUNTED)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include({ onFailure: 'open', problem: 'the primary process of this host ended' })
  })

  it('refuse with 503 and `closed` if the primary process is gone', async () => {
    const { nodes, neighbours } = await startTwo({ address: '5/1h', onFailure: 'closed' })
    neighbours[0]?.end()
    const { status, message } = await nodes[0].call()
    expect(status).to.equal(503)
    expect(message.error.data).to.deep.equal({ reason: 'rate-limit-unavailable', retryable: true })
    expect((await nodes[1].call()).status).to.equal(200)
  })
})
