// Sentinels that name the primary: it is found, followed through fail-overs, and never taken from one that was replaced.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../core/index.ts'
import type { RedisConnection } from '../../plugins/families/redis/index.ts'
import { startNode } from '../cluster/support/nodes.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { connectionsAt, startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { startWatched } from '../support/redis-sentinel.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { openSession } from '../support/session-client.ts'

const PASSWORD = 'correct-horse-7'
const HOST_CONFIG = { toolsets: { none: [] }, routes: { '/': { toolsets: 'none' } } }

/** Writes until it is done at this server; says how often it was refused before. */
async function untilWritten(connection: RedisConnection, key: string, at: RedisServer) {
  let refused = 0
  const write = async () => {
    await connection.run(client => client.set(connection.key(key), 'here')).catch(() => refused++)
    return at.cli('GET', connection.key(key))
  }
  await eventually(`a key that is written at port ${at.port}`, write, ([value]) => value === 'here')
  return refused
}

describe('Sentinels', function () {
  // Several servers each, which elect and load at their own pace.
  this.timeout(60_000)
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('name the primary, and another one when it was killed: found by itself, and told in three lines', async () => {
    const watched = await startWatched()
    const { connection, log } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '2s' })
    await connection.run(client => client.set(connection.key('before'), 'kept'))
    await watched.settled()
    await watched.primary.kill()
    await whenHealthy(connection, false)
    const next = await watched.replaced(watched.primary)
    await whenHealthy(connection)
    expect(await connection.run(client => client.get(connection.key('before')))).to.equal('kept')
    await untilWritten(connection, 'after', next)
    const told = log.filter(({ redis, level }) => redis !== undefined && level !== 'debug')
    console.log(`      told: ${told.map(({ level, message }) => `${level} "${message}"`).join(', ')}`)
    expect(told.map(({ message }) => message)).to.deep.equal([
      'Sentinels name the primary of Redis',
      'connected to Redis',
      'Redis does not answer; trying again until it does',
      'Sentinels name the primary of Redis',
      'Redis is back',
    ])
    expect(told[3]?.['primary']).to.equal(`127.0.0.1:${next.port}`)
  })

  it('are followed where the primary is replaced as planned, and so are readers that block', async () => {
    const watched = await startWatched()
    const { connection } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '2s' })
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

  it('leave a primary that hung, and goes on as if nothing had been, alone: what is written goes to the new one', async () => {
    const watched = await startWatched()
    const { connection, log } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '2s' })
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
    console.log(`      ${done} of 100 writes answered, ${keys} of them at the new primary`)
    expect(Number(keys)).to.be.at.least(done)
    await untilWritten(connection, 'after', next)
  })

  it('may be away, all but one; and all of them, where what they named goes on', async () => {
    const watched = await startWatched()
    await watched.sentinels[0]?.kill()
    await watched.sentinels[1]?.kill()
    const { connection } = await startRedisHost({ sentinel: watched.sentinel, commandTimeout: '1s' })
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

  it('that are all away let the host start, not ready, and are asked until one answers', async () => {
    const port = await freePort()
    const primary = await startRedis()
    const sentinel = { name: 'mymaster', addresses: [`redis://127.0.0.1:${port}`] }
    const { connection, log, plugin } = await startRedisHost({ sentinel, commandTimeout: '1s' })
    expect((await plugin.readiness()).checks).to.include({ redis: false })
    const [line] = log.filter(({ level, redis }) => level === 'warn' && redis !== undefined)
    expect(String(line?.['reason'])).to.match(/^the Sentinel 127\.0\.0\.1:\d+ says: .*ECONNREFUSED/)
    await startRedis({ port, sentinel: [`sentinel monitor mymaster 127.0.0.1 ${primary.port} 1`] })
    await whenHealthy(connection)
  })

  it('are asked as a user of their own, and another one is the user of Redis, in a database of its own', async () => {
    const rule = `on >${PASSWORD} -@all +sentinel|get-master-addr-by-name`
    const primary = await startRedis({ acl: [`mcp on >${PASSWORD}-of-redis ~mcp-host:* +@all`] })
    const watching = [`sentinel monitor mymaster 127.0.0.1 ${primary.port} 1`]
    const server = await startRedis({ sentinel: [...watching, 'user default off', `user asker ${rule}`] })
    const sentinel = { name: 'mymaster', addresses: [server.url], username: 'asker', password: PASSWORD, database: 3 }
    const own = { sentinel, username: 'mcp', password: `${PASSWORD}-of-redis` }
    const { connection, log } = await startRedisHost(own)
    await whenHealthy(connection)
    await connection.run(client => client.set(connection.key('numbered'), 'there'))
    expect(primary.cli('-n', '3', 'GET', 'mcp-host:numbered')).to.deep.equal(['there'])
    expect(JSON.stringify(log)).to.not.include(PASSWORD)
  })

  for (const { what, lines, change = {}, message } of [
    {
      what: 'ask for a user',
      lines: ['user default off', `user asker on >${PASSWORD} +@all`],
      message: /the Sentinel 127\.0\.0\.1:\d+ says: .*(?:NOAUTH|NOPERM|WRONGPASS).*redis\.sentinel\.password/,
    },
    {
      what: 'do not know the password',
      lines: [`requirepass ${PASSWORD}`],
      change: { password: `${PASSWORD}-not` },
      message: /the Sentinel .*WRONGPASS.*redis\.sentinel\.password/,
    },
    {
      what: 'let their user ask nothing',
      lines: [`user asker on >${PASSWORD} -@all +ping`],
      change: { username: 'asker', password: PASSWORD },
      message: /the Sentinel .*NOPERM.*sentinel\|get-master-addr-by-name/,
    },
    {
      what: 'know no primary of the name',
      lines: [],
      change: { name: 'other' },
      message: /watches no primary of the name "other"/,
    },
  ] as const) {
    it(`that ${what} stop the start, with no password in the message`, async () => {
      const primary = await startRedis()
      const server = await startRedis({ sentinel: [`sentinel monitor mymaster 127.0.0.1 ${primary.port} 1`, ...lines] })
      const sentinel = { name: 'mymaster', addresses: [server.url], ...change }
      const error = await rejectionOf(startRedisHost({ sentinel }))
      expect(error).to.be.instanceOf(StartError)
      expect(String(error)).to.match(message).and.not.include(PASSWORD)
    })
  }

  it('are none: a Redis that is asked as one stops the start, and says which port is meant', async () => {
    const { url } = await startRedis()
    const error = await rejectionOf(startRedisHost({ sentinel: { name: 'mymaster', addresses: [url] } }))
    expect(String(error)).to.match(/unknown command .*those of Sentinels, port 26379/)
  })

  it('lead to a Redis whose user has the rights of docs/redis.md and no more; what is missing is named at the start', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/redis.md'), 'utf8')
    const rule = /^user mcp on >password (.*)$/m.exec(page)?.[1] ?? ''
    const asking = /^user asker on >password (.*)$/m.exec(page)?.[1] ?? ''
    const acl = ['default off', `mcp on >password ${rule}`, 'admin on >admin ~* &* +@all']
    const primary = await startRedis({ acl })
    const watching = [
      `sentinel monitor mymaster 127.0.0.1 ${primary.port} 1`,
      'sentinel auth-user mymaster admin',
      'sentinel auth-pass mymaster admin',
    ]
    const server = await startRedis({
      sentinel: [...watching, 'user default off', `user asker on >password ${asking}`],
    })
    const sentinel = { name: 'mymaster', addresses: [server.url], username: 'asker', password: 'password' }
    const redis = { sentinel, username: 'mcp', password: 'password' }
    const node = await startNode({ url: '' }, { ...HOST_CONFIG, redis })
    const session = await openSession(`${node.url}/`)
    expect((await session.request('ping')).status).to.equal(200)
    primary.cli('--user', 'admin', '--pass', 'admin', '--no-auth-warning', 'ACL', 'SETUSER', 'mcp', '-zincrby', '-xlen')
    const error = await rejectionOf(startNode({ url: '' }, { ...HOST_CONFIG, redis }))
    expect(String(error)).to.match(/mymaster of redis:.* refuses us: NOPERM: our user may not run zincrby, xlen/)
  })
})
