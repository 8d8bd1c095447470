// Tests that credentials in the headers of an initialize request are not stored in Redis or sent to other nodes.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { needsRedis, type RedisServer, stopRedis } from '../support/redis-server.ts'
import { openSession } from '../support/session-client.ts'
import { stopHosts } from '../support/start-host.ts'
import { at, startCluster } from './support/nodes.ts'

const CREDENTIALS = {
  authorization: 'Bearer planted-authorization',
  cookie: 'a=planted-cookie',
  'x-api-key': 'planted-api-key',
  'x-forwarded-access-token': 'planted-access-token',
  'cf-access-jwt-assertion': 'planted-assertion',
  'x-any': 'Bearer planted-bearer',
}
const PLAIN = { 'x-tenant': 'kept-tenant', 'x-auth-request-email': 'kept-email', 'user-agent': 'kept-agent' }

const READS: Readonly<Record<string, (key: string) => readonly string[]>> = {
  hash: key => ['HGETALL', key],
  string: key => ['GET', key],
  zset: key => ['ZRANGE', key, '0', '-1'],
  set: key => ['SMEMBERS', key],
  list: key => ['LRANGE', key, '0', '-1'],
  stream: key => ['XRANGE', key, '-', '+'],
}

/** All keys, and what they have. */
function contentsOf(redis: RedisServer): string {
  const keys = redis.cli('KEYS', '*')
  const values = keys.flatMap(key => {
    const read = READS[String(redis.cli('TYPE', key)[0])]
    if (!read) throw new Error(`${key} is of a type that this test cannot read`)
    return redis.cli(...read(key))
  })
  return [...keys, ...values].join('\n')
}

describe('request headers of a shared session', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHosts)
  after(stopRedis)

  it('are stored and shared without credentials', async () => {
    const seen: Array<Record<string, unknown>> = []
    const cluster = await startCluster(2, index => ({
      toolsets: { all: [defineTool({ name: 'where', handler: () => `node ${index}` })] },
      routes: { '/': { toolsets: 'all' } },
      configureSession({ headers }) {
        seen.push({ ...headers })
      },
    }))
    const session = await openSession(`${cluster.nodes[0]?.url}/`, { headers: { ...CREDENTIALS, ...PLAIN } })
    const other = at(`${cluster.nodes[1]?.url}/`, session)
    expect((await other.request('tools/call', { name: 'where' })).text).to.include('node 1')
    const contents = contentsOf(cluster.redis)
    const planted = Object.values(CREDENTIALS).map(value => value.replace(/^.*[ =]/, ''))
    const found = planted.filter(text => contents.includes(text))
    expect(found).to.deep.equal([])
    for (const text of Object.values(PLAIN)) expect(contents).to.include(text)
    expect(seen).to.have.lengthOf(2)
    expect(seen[0]).to.include(CREDENTIALS).and.to.include(PLAIN)
    expect(seen[1]).to.include(PLAIN)
    expect(Object.keys(CREDENTIALS).filter(name => name in (seen[1] ?? {}))).to.deep.equal([])
  })
})
