// Two deployments with one Redis and one prefix: the second is refused before it can end a session of the first. Nodes of
// one deployment are known by a secret that they have in common, so a rotation that goes step by step loses no session.
import { expect } from 'chai'
import { defineTool, StartError } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { initialize, openSession } from '../support/session-client.ts'
import type { StartedHost } from '../support/start-host.ts'
import { at, startNode } from './support/nodes.ts'

const [OLD, NEW, OTHER] = ['old', 'new', 'other'].map(word => `a secret for tests that is ${word} and long`) as [
  string,
  string,
  string,
]
const config = {
  toolsets: { all: [defineTool({ name: 'hello', handler: () => 'hello' })] },
  routes: { '/': { toolsets: 'all' } },
}

let redis: RedisServer
const start = (secrets: string[], more: object = {}, url = redis.url) =>
  startNode({ url }, { ...config, secrets, redis: { url, commandTimeout: '1s' }, ...more })

const warnings = ({ log }: StartedHost) => log.flatMap(({ level, message }) => (level === 'warn' ? [message] : []))

describe('the keys of a deployment', () => {
  before(function () {
    needsRedis(this)
  })
  beforeEach(async () => {
    redis = await startRedis()
  })
  afterEach(stopHostsAndRedis)

  it('are not for a host with other secrets: it does not start, and ends no session', async () => {
    const ours = await start([OLD])
    const sessions = []
    for (let count = 0; count < 20; count++) sessions.push(await openSession(`${ours.url}/`))
    const greedy = { sessions: { maxIdle: 4 } }
    const theirs = await start([OTHER], greedy).catch(thrown => thrown)
    // What one that is not refused does: it opens sessions, and those of others go for them.
    if ('url' in theirs) {
      for (let count = 0; count < 8; count++) await openSession(`${theirs.url}/`)
      await eventually(
        'no more idle sessions than may be',
        () => Number(redis.cli('ZCARD', 'mcp-host:{sessions}:idle')[0]),
        idle => idle <= 4,
      )
    }
    let ended = 0
    for (const session of sessions) if ((await session.request('ping')).status !== 200) ended++
    console.log(`two hosts with one Redis and one prefix: ${ended} of ${sessions.length} sessions ended by the other`)
    expect(ended).to.equal(0)
    expect(theirs).to.be.instanceOf(StartError)
    expect(String(theirs)).to.include('the keys mcp-host:* of redis://').and.include('redis.keyPrefix')
    expect(String(theirs)).to.not.include(OTHER).and.not.include(OLD)
    expect(redis.cli('ZRANGE', 'mcp-host:{nodes}:secrets', '0', '-1').join()).to.not.include('secret')
  })

  it('may be in one Redis with those of another, by a prefix of their own', async () => {
    const ours = await start([OLD])
    const theirs = await start([OTHER], { redis: { url: redis.url, keyPrefix: 'theirs:' } })
    for (const { url } of [ours, theirs]) expect((await initialize(`${url}/`)).status).to.equal(200)
  })

  it('are free when the last of its nodes has stopped, or was not heard of for long', async () => {
    const ours = await start([OLD])
    await ours.host.close({ grace: 0 })
    redis.cli('ZADD', 'mcp-host:{nodes}:secrets', '1', 'gone fingerprint')
    const theirs = await start([OTHER])
    expect((await initialize(`${theirs.url}/`)).status).to.equal(200)
  })

  it('are refused later to a host that started while Redis was away', async () => {
    const kept = await startRedis({ persistent: true })
    redis = kept
    const ours = await start([OLD])
    const session = await openSession(`${ours.url}/`)
    await kept.kill()
    const theirs = await start([OTHER])
    await kept.start()
    const told = async () => (await fetch(`${theirs.url}/health`)).json() as Promise<{ reasons?: { redis?: string } }>
    await eventually(
      'health that names the keys of another host',
      async () => (await told()).reasons?.redis,
      reason => reason === 'Redis refuses: keys of another host',
    )
    expect((await initialize(`${theirs.url}/`)).status).to.equal(503)
    const lines = theirs.log.filter(({ reason }) => String(reason).includes('are in use by a host'))
    expect(lines.map(({ level }) => level)).to.deep.equal(['error'])
    await eventually(
      'the session is served',
      async () => (await session.request('ping')).status,
      status => status === 200,
    )
  })

  it('stay with nodes whose secrets are rotated one node after the other, and so do sessions', async () => {
    const steps = [[OLD], [OLD, NEW], [NEW, OLD], [NEW]]
    const nodes = [await start([OLD]), await start([OLD])]
    const open = async (signed = OLD) => ({ signed, session: await openSession(`${nodes[1]?.url}/`) })
    let sessions = [await open()]
    let [asked, served] = [0, 0]
    async function serve() {
      for (const { session } of sessions) {
        for (const { url } of nodes) {
          asked++
          if ((await at(`${url}/`, session).request('ping')).status === 200) served++
        }
      }
    }
    for (const secrets of steps.slice(1)) {
      // What a secret signed that nobody has any more has idled by then.
      sessions = sessions.filter(({ signed }) => secrets.includes(signed))
      for (const index of nodes.keys()) {
        const next = await start(secrets)
        await nodes[index]?.host.close({ grace: 0 })
        nodes[index] = next
        expect(warnings(next)).to.deep.equal([])
        await serve()
      }
      sessions.push(await open(secrets[0]))
    }
    console.log(
      `secrets rotated in ${steps.length - 1} steps at ${nodes.length} nodes: ${served} of ${asked} requests served`,
    )
    expect([served, asked]).to.deep.equal([16, 16])
  })

  it('come with a warning where a step of the rotation was left out', async () => {
    await start([OLD])
    const [line] = warnings(await start([NEW, OLD]))
    expect(line).to.include('do not know the first of our `secrets`')
  })
})
