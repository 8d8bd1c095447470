// Tests that clients of a killed node get node-lost.
import { expect } from 'chai'
import { type NodeProcess, startNode } from '../cluster/support/node-process.ts'
import { at } from '../cluster/support/nodes.ts'
import { createRemotePuppet } from '../cluster/support/remote-puppet.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import { nextMessage, openSession } from '../support/session-client.ts'

/** Documented time until a killed node is detected, milliseconds. */
const LIMIT = 30_000

describe('killed node', () => {
  const processes: NodeProcess[] = []
  before(function () {
    needsRedis(this)
  })
  after(async () => {
    await Promise.all(processes.map(node => node.kill()))
    await stopRedis()
  })

  it('reports node-lost to connected and resuming clients', async () => {
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
    // Other nodes detect the loss when the key of the node expires.
    const left = redis.cli('KEYS', '*:node:*').map(key => Number(redis.cli('PTTL', key)[0]))
    expect(Math.max(...left)).to.be.within(1, LIMIT)
    await one.kill()
    const first = await nextMessage(follower)
    const second = await nextMessage(await other.get({ 'Last-Event-ID': String(calls[1]) }))
    expect([first, second].map(({ error }) => error.data.reason)).to.deep.equal(['node-lost', 'node-lost'])
  })
})
