// Tests that a call is answered only after its change notifications are on the change bus, and that their order is
// kept.
import { expect } from 'chai'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { listen, nextMessage, openSession } from '../support/session-client.ts'
import type { StartedHost } from '../support/start-host.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'
import changes from './support/changes.config.ts'
import { type NodeProcess, startNode as startProcess } from './support/node-process.ts'
import { startNode } from './support/nodes.ts'

const LAST = 'page://last'
let redis: RedisServer
/** Two in this process, and one that is killed. */
let local: StartedHost[]
let dying: NodeProcess
let urls: readonly string[]

/** The URIs that a listener is told of, up to `LAST`. */
async function toldUntilLast(stream: StreamExchange): Promise<string[]> {
  const told: string[] = []
  for (let uri = ''; uri !== LAST; told.push(uri)) uri = ((await nextMessage(stream)) as RpcMessage).params.uri
  stream.drop()
  return told.slice(0, -1)
}

async function listenTo(url: string | undefined, uris: readonly string[]): Promise<StreamExchange> {
  const stream = await listen(`${url}/`, { resourceSubscriptions: [...uris, LAST] })
  await nextMessage(stream)
  return stream
}

const { toolsets = {}, routes = {} } = changes

describe('change notifications of a call', () => {
  before(async function () {
    needsRedis(this)
    redis = await startRedis()
    const config = { toolsets, routes, redis: { url: redis.url, commandTimeout: '4s' } }
    local = [await startNode(redis, config), await startNode(redis, config)]
    const env = { REDIS_URL: redis.url }
    dying = await startProcess({ config: 'test/cluster/support/changes.config.ts', port: 0, env })
    urls = [...local, dying].map(({ url }) => url)
  })
  after(async () => {
    await dying?.kill()
    await stopHostsAndRedis()
  })

  it('arrive before later changes of the same caller at another node', async () => {
    const [rounds, perRound] = [10, 6]
    const uris = Array.from({ length: perRound }, (_, index) => `page://${index}`)
    const streams = await Promise.all(urls.map(url => listenTo(url, uris)))
    const told = streams.map(toldUntilLast)
    const sessions = await Promise.all(urls.map(url => openSession(`${url}/`)))
    for (let round = 0; round < rounds; round++) {
      for (const [index, uri] of uris.entries()) {
        await sessions[(round + index) % urls.length]?.request('tools/call', {
          name: 'change',
          arguments: { uris: [uri] },
        })
      }
    }
    await sessions[0]?.request('tools/call', { name: 'change', arguments: { uris: [LAST] } })
    const outOfOrder = (await Promise.all(told)).map(
      heard =>
        Array.from({ length: rounds }, (_, round) => heard.slice(round * perRound, (round + 1) * perRound)).filter(
          part => part.join() !== uris.join(),
        ).length,
    )
    expect(outOfOrder).to.deep.equal(urls.map(() => 0))
  })

  it('are delayed while Redis hangs; the call is still answered', async () => {
    const [node] = local
    const stream = await listenTo(node?.url, ['page://0'])
    redis.pause()
    const change = (uri: string) =>
      modern(`${node?.url}/`, 'tools/call', { name: 'change', arguments: { uris: [uri] } })
    const answers = [await change('page://0'), await change(LAST)]
    redis.resume()
    expect(answers.map(({ message }) => message.result.content[0].text)).to.deep.equal(['done', 'done'])
    expect(await toldUntilLast(stream)).to.deep.equal(['page://0'])
    const log = JSON.stringify(node?.log)
    expect(log).to.include('the change bus does not acknowledge changes').and.include('Redis did not respond')
  })

  it('reach other nodes if a node is killed right after the result', async () => {
    const uris = Array.from({ length: 5 }, (_, index) => `page://${index}`)
    const stream = await listenTo(urls[0], uris)
    const session = await openSession(`${dying.url}/`)
    const { message } = await session.request('tools/call', { name: 'change', arguments: { uris } })
    await dying.kill()
    expect(message.result.content[0].text).to.equal('done')
    await modern(`${urls[0]}/`, 'tools/call', { name: 'change', arguments: { uris: [LAST] } })
    expect(await toldUntilLast(stream)).to.deep.equal(uris)
  })

  it('made outside of calls are published before shutdown', async () => {
    const count = 500
    const { host } = await startNode(redis, { toolsets, routes })
    redis.cli('FLUSHALL')
    for (let index = 0; index < count; index++) host.runtime.resourceUpdated(`page://${index}`)
    await host.close({ grace: 0 })
    const kept = Number(redis.cli('XLEN', 'mcp-host:{bus}:changes')[0])
    expect(kept).to.equal(count)
  })
})
