// Tests streams whose end was lost in Redis, as in a failover: clients at another node get an error.
import { expect } from 'chai'
import { createPuppet } from '../support/puppet-tool.ts'
import { needsRedis } from '../support/redis-server.ts'
import { nextMessage, readRest, type SessionClient } from '../support/session-client.ts'
import { keepKeys, startCuttable, stopCuttable } from './support/lossy-redis.ts'
import { openAtAll, startNode } from './support/nodes.ts'

const puppet = createPuppet()
const config = { toolsets: { all: [puppet.tool] }, routes: { '/': { toolsets: 'all' } } }

/** A call at the first of two nodes, of which one message was read; the second node's line to Redis can be cut. */
async function startCall(name: string) {
  const { redis, cuttable, cut, mend } = await startCuttable()
  const nodes = [await startNode(redis, config), await startNode(cuttable, config)]
  const [a, b] = (await openAtAll({ nodes })) as readonly [SessionClient, SessionClient]
  const call = await a.call('puppet', { name }, { id: name })
  const { ctx, finish } = await puppet.call(name)
  await call.next()
  ctx.progress(1)
  const seen = await call.next()
  expect(seen?.message.params.progress).to.equal(1)
  const lastId = { 'Last-Event-ID': String(seen?.id) }
  return { nodes, b, call, finish, lastId, cut, mend, lose: keepKeys(redis, '*:stream:*', '*:l:*') }
}

const isLost = { reason: 'node-lost', retryable: true }

describe('stream end lost in Redis', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopCuttable)

  it('resumption at another node ends with an error and keeps the session', async () => {
    const { nodes, b, call, finish, lastId, lose } = await startCall('ended')
    finish('done')
    expect((await nextMessage(call)).result.content[0].text).to.equal('done')
    await call.rest()
    lose()
    const [answer, ...more] = await readRest(await b.get(lastId))
    expect(answer).to.deep.include({ id: 'ended' })
    expect(answer.error.data).to.deep.equal(isLost)
    expect(more).to.deep.equal([])
    expect((await b.request('ping')).status).to.equal(200)
    const said = nodes[1]?.log.filter(({ level }) => level === 'warn').map(({ message }) => message)
    expect(said).to.deep.equal(['the event store lost the end of a stream: its requests failed'])
  })

  it('a client connected at another node gets an error', async () => {
    const { b, call, finish, lastId, cut, mend, lose } = await startCall('followed')
    const followed = await b.get(lastId)
    expect(followed.status).to.equal(200)
    cut()
    finish('done')
    expect((await nextMessage(call)).result.content[0].text).to.equal('done')
    await call.rest()
    lose()
    mend()
    const [answer, ...more] = await readRest(followed)
    expect(answer).to.deep.include({ id: 'followed' })
    expect(answer.error.data).to.deep.equal(isLost)
    expect(more).to.deep.equal([])
  })
})
