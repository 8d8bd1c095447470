// Tests a stream written by two nodes after Redis lost the stream's ownership, as in a failover.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { needsRedis, type RedisServer } from '../support/redis-server.ts'
import { nextMessage, type SessionClient } from '../support/session-client.ts'
import type { StartedHost } from '../support/start-host.ts'
import { keepKeys, startCuttable, stopCuttable } from './support/lossy-redis.ts'
import { openAtAll, startNode } from './support/nodes.ts'

const NAMES = ['one', 'two', 'three']
const pages = NAMES.map(name => defineResource({ name, uri: `page://${name}`, handler: () => name }))
const config = { toolsets: { all: pages }, routes: { '/': { toolsets: 'all' } } }

const update = (node: StartedHost | undefined, name = 'one') => node?.host.runtime.resourceUpdated(`page://${name}`)

/** Keeps what Redis knows of who writes; what it gives makes it so again, and empties what the nodes are yet to hear. */
function keepWriters(redis: RedisServer) {
  const lose = keepKeys(redis, '*:r:use', '*:stream:*', '*:l:*')
  return () => {
    lose()
    for (const inbox of redis.cli('KEYS', '*:inbox:*')) redis.cli('DEL', inbox)
  }
}

async function startNodes() {
  const { redis, cuttable, cut, mend } = await startCuttable()
  const nodes = [await startNode(cuttable, config), await startNode(redis, config)]
  const isReady = async () => (await fetch(`${nodes[0]?.url}/readyz`)).status === 200
  return {
    redis,
    nodes,
    async cut() {
      cut()
      await eventually('a node without Redis', isReady, ready => !ready)
    },
    async mend() {
      mend()
      await eventually('a node with Redis', isReady, Boolean)
    },
  }
}

/** Up to this many addresses of changes, with the ids of their events. */
async function changesOf(stream: Awaited<ReturnType<SessionClient['get']>>, count: number) {
  const heard: Array<{ uri: string; id: string | undefined }> = []
  while (heard.length < count) {
    const event = await stream.next()
    if (!event) break
    const uri = event.message?.params?.uri
    if (uri) heard.push({ uri, id: event.id })
  }
  return heard
}

describe('stream ownership lost in Redis', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopCuttable)

  it('the new node continues the stream, and the client can resume it', async () => {
    const { redis, nodes, cut, mend } = await startNodes()
    const [a, b] = (await openAtAll({ nodes })) as readonly [SessionClient, SessionClient]
    for (const name of NAMES) await a.request('resources/subscribe', { uri: `page://${name}` })
    const first = await a.get()
    update(nodes[0])
    const [seen] = await changesOf(first, 1)
    const lose = keepWriters(redis)
    await cut()
    first.drop()
    const second = await b.get({ 'Last-Event-ID': String(seen?.id) })
    update(nodes[1], 'two')
    expect((await nextMessage(second)).params.uri).to.equal('page://two')
    lose()
    // The bus too: the node before tells everything, under numbers that the other has given or will give.
    redis.cli('DEL', 'mcp-host:{bus}:changes', 'mcp-host:{bus}:count')
    const [stream = ''] = redis.cli('KEYS', 'mcp-host:*:stream:*')
    const last = () => Number(redis.cli('HGET', stream.replace(/r:stream:/, 'l:'), 'l')[0])
    const before = last()
    await mend()
    await eventually('messages of the node before', last, number => number >= before + NAMES.length)
    update(nodes[1], 'three')
    const heard = await changesOf(second, NAMES.length)
    expect(heard.map(({ uri }) => uri)).to.have.members(NAMES.map(name => `page://${name}`))
    expect(heard.filter(({ id }) => id === undefined)).to.deep.equal([])
    second.drop()
    update(nodes[1])
    const third = await b.get({ 'Last-Event-ID': String(heard.at(-1)?.id) })
    expect(third.status).to.equal(200)
    expect(await changesOf(third, 1)).to.have.length(1)
    third.drop()
    const errors = nodes.flatMap(({ log }) => log.filter(({ level }) => level === 'error'))
    expect(errors.map(({ message, err }) => `${message}: ${err}`)).to.deep.equal([])
  })
})
