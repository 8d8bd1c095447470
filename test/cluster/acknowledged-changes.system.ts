// Tests that a call is answered only after its change notifications are on the change bus, and that their order is
// kept.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { needsRedis, type RedisServer, startRedis, stopRedis } from '../support/redis-server.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { listen, nextMessage, openSession } from '../support/session-client.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'
import { type NodeProcess, startNode } from './support/node-process.ts'
import { startNode as startHost } from './support/nodes.ts'

const NODES = 3
const LAST = 'page://last'
let nodes: readonly NodeProcess[] = []
let redis: RedisServer

/** The URIs that a listener is told of, up to `LAST`. */
async function toldUntilLast(stream: StreamExchange): Promise<string[]> {
  const told: string[] = []
  for (let uri = ''; uri !== LAST; told.push(uri)) uri = ((await nextMessage(stream)) as RpcMessage).params.uri
  stream.drop()
  return told.slice(0, -1)
}

async function listenTo(node: NodeProcess | undefined, uris: readonly string[]): Promise<StreamExchange> {
  const stream = await listen(`${node?.url}/`, { resourceSubscriptions: [...uris, LAST] })
  await nextMessage(stream)
  return stream
}

describe('change notifications of a call', () => {
  before(async function () {
    needsRedis(this)
    redis = await startRedis()
    const config = 'test/cluster/support/changes.config.ts'
    const env = { REDIS_URL: redis.url }
    nodes = await Promise.all(Array.from({ length: NODES }, () => startNode({ config, port: 0, env })))
  })
  after(async () => {
    await Promise.all(nodes.map(node => node.kill()))
    await stopRedis()
  })

  it('arrive before later changes of the same caller at another node', async () => {
    const [rounds, perRound] = [10, 6]
    const uris = Array.from({ length: perRound }, (_, index) => `page://${index}`)
    const streams = await Promise.all(nodes.map(node => listenTo(node, uris)))
    const told = streams.map(toldUntilLast)
    const sessions = await Promise.all(nodes.map(node => openSession(`${node.url}/`)))
    for (let round = 0; round < rounds; round++) {
      for (const [index, uri] of uris.entries()) {
        await sessions[(round + index) % NODES]?.request('tools/call', { name: 'change', arguments: { uris: [uri] } })
      }
    }
    await sessions[0]?.request('tools/call', { name: 'change', arguments: { uris: [LAST] } })
    const outOfOrder = (await Promise.all(told)).map(
      heard =>
        Array.from({ length: rounds }, (_, round) => heard.slice(round * perRound, (round + 1) * perRound)).filter(
          part => part.join() !== uris.join(),
        ).length,
    )
    expect(outOfOrder).to.deep.equal(nodes.map(() => 0))
  })

  it('are delayed while Redis hangs; the call is still answered', async () => {
    const [node] = nodes
    const stream = await listenTo(node, ['page://0'])
    redis.pause()
    const change = (uri: string) =>
      modern(`${node?.url}/`, 'tools/call', { name: 'change', arguments: { uris: [uri] } })
    const answers = [await change('page://0'), await change(LAST)]
    redis.resume()
    expect(answers.map(({ message }) => message.result.content[0].text)).to.deep.equal(['done', 'done'])
    expect(await toldUntilLast(stream)).to.deep.equal(['page://0'])
    expect(node?.output).to.include('the change bus does not acknowledge changes').and.include('Redis did not respond')
  })

  it('reach other nodes if a node is killed right after the result', async () => {
    const [listening, ...dying] = nodes
    const perCall = 5
    const uris = dying.map((_, node) => Array.from({ length: perCall }, (_, index) => `page://${node}-${index}`))
    const stream = await listenTo(listening, uris.flat())
    for (const [index, node] of dying.entries()) {
      const session = await openSession(`${node.url}/`)
      const { message } = await session.request('tools/call', { name: 'change', arguments: { uris: uris[index] } })
      await node.kill()
      expect(message.result.content[0].text).to.equal('done')
    }
    const session = await openSession(`${listening?.url}/`)
    await session.request('tools/call', { name: 'change', arguments: { uris: [LAST] } })
    const told = await toldUntilLast(stream)
    expect(told).to.deep.equal(uris.flat())
  })

  it('made outside of calls are published before shutdown', async () => {
    const count = 500
    const page = defineResource({ name: 'page', uriTemplate: 'page://{name}', handler: () => 'text' })
    const { host } = await startHost(redis, { toolsets: { all: [page] }, routes: { '/': { toolsets: 'all' } } })
    redis.cli('FLUSHALL')
    for (let index = 0; index < count; index++) host.runtime.resourceUpdated(`page://${index}`)
    await host.close({ grace: 0 })
    const kept = Number(redis.cli('XLEN', 'mcp-host:{bus}:changes')[0])
    expect(kept).to.equal(count)
  })
})
