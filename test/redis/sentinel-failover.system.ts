// Tests failover with Redis Sentinel: the host follows the primary and ignores a replaced one.
import { expect } from 'chai'
import type { RedisConnection } from '../../plugins/families/redis/index.ts'
import { eventually } from '../support/eventually.ts'
import { connectionsAt, startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { startWatched } from '../support/redis-sentinel.ts'
import { needsRedis, type RedisServer } from '../support/redis-server.ts'

/** Writes until this server has the value. */
async function untilWritten(connection: RedisConnection, key: string, at: RedisServer) {
  const write = async () => {
    await connection.run(client => client.set(connection.key(key), 'here')).catch(() => undefined)
    return at.cli('GET', connection.key(key))
  }
  await eventually(`a key that is written at port ${at.port}`, write, ([value]) => value === 'here')
}

describe('Redis Sentinel failover', () => {
  // Several servers each, which elect and load at their own pace.
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('finds the new primary after a kill and logs three messages', async () => {
    const watched = await startWatched()
    const { connection, log } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '5s' })
    await connection.run(client => client.set(connection.key('before'), 'kept'))
    await watched.settled()
    await watched.primary.kill()
    await whenHealthy(connection, false)
    const next = await watched.replaced(watched.primary)
    await whenHealthy(connection)
    expect(await connection.run(client => client.get(connection.key('before')))).to.equal('kept')
    await untilWritten(connection, 'after', next)
    const told = log.filter(({ redis, level }) => redis !== undefined && level !== 'debug')
    expect(told.map(({ message }) => message)).to.deep.equal([
      'Sentinels name the primary of Redis',
      'connected to Redis',
      'Redis does not respond; retrying',
      'Sentinels name the primary of Redis',
      'Redis is back',
    ])
    expect(told[3]?.['primary']).to.equal(`127.0.0.1:${next.port}`)
  })

  it('follows a planned failover, also with blocking readers', async () => {
    const watched = await startWatched()
    const { connection } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '5s' })
    await whenHealthy(connection)
    const reader = await connection.duplicate()
    const read = async () => reader.client.xRead({ key: 'inbox', id: '0' }, { BLOCK: 1_000 }).catch(() => undefined)
    await read()
    watched.sentinels[0]?.cli('SENTINEL', 'FAILOVER', watched.sentinel.name)
    const next = await watched.replaced(watched.primary)
    await untilWritten(connection, 'after', next)
    next.cli('XADD', 'inbox', '*', 'text', 'hello')
    const heard = await eventually('what was written at the new primary', read, found =>
      JSON.stringify(found ?? '').includes('hello'),
    )
    expect(heard).to.not.equal(undefined)
    expect(connectionsAt(next)).to.have.lengthOf(2)
    reader.close()
  })

  it('ignores a previous primary that resumes after a hang; writes go to the new one', async () => {
    const watched = await startWatched()
    const { connection, log } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '5s' })
    await whenHealthy(connection)
    watched.primary.pause()
    const next = await watched.replaced(watched.primary)
    // Until the host has heard of it, half a second, the old one would take writes that are lost.
    const known = () => log.some(({ primary }) => primary === `127.0.0.1:${next.port}`)
    await eventually('a host that knows the new primary', known)
    watched.primary.resume()
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) =>
        connection.run(client => client.set(connection.key('n', `${index}`), '1')),
      ),
    )
    const done = results.filter(({ status }) => status === 'fulfilled').length
    const [keys] = next.cli('EVAL', "return #redis.call('KEYS', 'mcp-host:n:*')", '0')
    expect(Number(keys)).to.be.at.least(done)
    await untilWritten(connection, 'after', next)
  })

  it('works with one Sentinel and keeps its connection without any', async () => {
    const watched = await startWatched()
    await watched.sentinels[0]?.kill()
    await watched.sentinels[1]?.kill()
    const { connection } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '5s' })
    await whenHealthy(connection)
    await watched.sentinels[2]?.kill()
    await untilWritten(connection, 'alone', watched.primary)
    expect(connection.healthy).to.equal(true)
    // A new connection needs one of them.
    watched.primary.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await whenHealthy(connection, false)
    await watched.sentinels[0]?.start()
    await whenHealthy(connection)
  })
})
