// A node that is killed while it runs a call: whoever has the call's stream is told within 30 seconds.
import { expect } from 'chai'
import { type NodeProcess, startNode } from '../cluster/support/node-process.ts'
import { at } from '../cluster/support/nodes.ts'
import { createRemotePuppet } from '../cluster/support/remote-puppet.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import { nextMessage, openSession } from '../support/session-client.ts'

const LIMIT = 30_000

describe('a node that is killed', () => {
  const processes: NodeProcess[] = []
  before(function () {
    needsRedis(this)
  })
  after(async () => {
    await Promise.all(processes.map(node => node.kill()))
    await stopRedis()
  })

  it('is taken for lost within 30 s, by who reads along and by who comes later', async function () {
    this.timeout(120_000)
    const redis = await startRedis()
    const env = { REDIS_URL: redis.url, MCP_HOST_SECRETS: 'a secret for tests that is long enough to be one' }
    const config = 'test/cluster/support/journey.config.ts'
    for (let count = 0; count < 2; count++) processes.push(await startNode({ config, port: 0, env }))
    const [one, two] = processes as [NodeProcess, NodeProcess]
    const puppet = createRemotePuppet(processes)
    const session = await openSession(`${one.url}/mcp`)
    const other = at(`${two.url}/mcp`, session)
    const calls = []
    for (const name of ['read along', 'come back later']) {
      const call = await session.call('puppet', { name }, { id: name })
      await puppet.call(name)
      calls.push((await call.next())?.id)
    }
    const follower = await other.get({ 'Last-Event-ID': String(calls[0]) })
    const late = new Promise((_, reject) => setTimeout(reject, LIMIT, new Error('nothing within 30 s')).unref())
    const killed = performance.now()
    await one.kill()
    const first = await Promise.race([nextMessage(follower), late])
    const seconds = ((performance.now() - killed) / 1_000).toFixed(1)
    const second = await nextMessage(await other.get({ 'Last-Event-ID': String(calls[1]) }))
    expect([first, second].map(({ error }) => error.data.reason)).to.deep.equal(['node-lost', 'node-lost'])
    console.log(`a node was killed: 2 of 2 calls were answered with node-lost, the first ${seconds} s later`)
  })
})
