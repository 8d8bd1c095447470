// Tests the Redis key prefix: deployments with different secrets cannot share it, and secret rotation keeps sessions.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { StartError } from '../../core/plugin.ts'
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
  startNode({ url }, { ...config, secrets, redis: { url, commandTimeout: '5s' }, ...more })

const warnings = ({ log }: StartedHost) => log.flatMap(({ level, message }) => (level === 'warn' ? [message] : []))

describe('Redis key prefix of a deployment', () => {
  before(function () {
    needsRedis(this)
  })
  beforeEach(async () => {
    redis = await startRedis()
  })
  afterEach(stopHostsAndRedis)

  for (const [what, key, command] of [
    ['sessions', 'mcp-host:{sessions}:idle', 'zadd mcp-host:{sessions}:idle 1 digest:#holder'],
    ['tasks', 'mcp-host:{tasks}:sums', 'hset mcp-host:{tasks}:sums bytes 2000'],
    ['grants', 'mcp-host:grants:{pending}:order', 'zadd mcp-host:grants:{pending}:order 1 key'],
    ['grants', 'mcp-host:grants:*', 'set mcp-host:grants:{granted:refresh:1}:text sealed'],
  ] as const) {
    it(`startup fails with ${what} of an older version, and says what to do: ${key}`, async () => {
      redis.cli('eval', "for n = 1, 20000 do redis.call('set', 'other:' .. n, '') end", '0')
      redis.cli(...command.split(' '))
      const refused = await start([OLD]).catch(error => error)
      expect(refused).to.be.an.instanceOf(StartError).with.property('code', 'MH2301')
      expect(String(refused)).to.include(`${what} of an older version (${key})`)
      expect(String(refused)).to.include('redis.keyPrefix')
      redis.cli('del', command.split(' ')[1] ?? '')
      await openSession(`${(await start([OLD])).url}/`)
      await start([OLD])
    })
  }

  it('startup fails for a host with other secrets, and no session ends', async () => {
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
        () => Number(redis.cli('ZCARD', 'mcp-host:{sessions}:s:idle')[0]),
        idle => idle <= 4,
      )
    }
    let ended = 0
    for (const session of sessions) if ((await session.request('ping')).status !== 200) ended++
    expect(ended).to.equal(0)
    expect(theirs).to.be.instanceOf(StartError)
    expect(String(theirs)).to.include('the keys mcp-host:* of redis://').and.include('redis.keyPrefix')
    expect(String(theirs)).to.not.include(OTHER).and.not.include(OLD)
    expect(redis.cli('ZRANGE', 'mcp-host:{nodes}:secrets', '0', '-1').join()).to.not.include('secret')
  })

  it('two deployments share one Redis with different prefixes', async () => {
    const ours = await start([OLD])
    const theirs = await start([OTHER], { redis: { url: redis.url, keyPrefix: 'theirs:' } })
    for (const { url } of [ours, theirs]) expect((await initialize(`${url}/`)).status).to.equal(200)
  })

  it('is released when the last node stops or its heartbeat expires', async () => {
    const ours = await start([OLD])
    await ours.host.close({ grace: 0 })
    redis.cli('ZADD', 'mcp-host:{nodes}:secrets', '1', 'gone fingerprint')
    const theirs = await start([OTHER])
    expect((await initialize(`${theirs.url}/`)).status).to.equal(200)
  })

  it('is refused later to a host that started without Redis', async () => {
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

  it('secret rotation, one node at a time, keeps the prefix and the sessions', async () => {
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
    expect([served, asked]).to.deep.equal([16, 16])
  })

  it('logs a warning when a rotation step was skipped', async () => {
    await start([OLD])
    const [line] = warnings(await start([NEW, OLD]))
    expect(line).to.match(/`secrets`/)
  })
})
