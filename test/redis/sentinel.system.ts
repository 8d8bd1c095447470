// Tests startup with Redis Sentinel: credentials, unavailable Sentinels and configuration errors.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../core/plugin.ts'
import { startNode } from '../cluster/support/nodes.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { freePort } from '../support/free-port.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, startRedis } from '../support/redis-server.ts'
import { openSession } from '../support/session-client.ts'

const PASSWORD = 'correct-horse-7'
const HOST_CONFIG = { toolsets: { none: [] }, routes: { '/': { toolsets: 'none' } } }

describe('Redis Sentinel startup', () => {
  // Several servers each, which elect and load at their own pace.
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('readiness fails until a Sentinel answers', async () => {
    const port = await freePort()
    const primary = await startRedis()
    const sentinel = { name: 'mymaster', addresses: [`redis://127.0.0.1:${port}`] }
    const { connection, log, plugin } = await startRedisHost({ sentinel, commandTimeout: '5s' })
    expect((await plugin.checkReadiness()).checks).to.include({ redis: false })
    const [line] = log.filter(({ level, redis }) => level === 'warn' && redis !== undefined)
    expect(String(line?.['reason'])).to.match(/^the Sentinel 127\.0\.0\.1:\d+ responded: .*ECONNREFUSED/)
    await startRedis({ port, sentinel: [`sentinel monitor mymaster 127.0.0.1 ${primary.port} 1`] })
    await whenHealthy(connection)
  })

  it('uses separate users for Sentinel and Redis, and a database number', async () => {
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
      what: 'missing Sentinel credentials',
      lines: ['user default off', `user asker on >${PASSWORD} +@all`],
      message: /the Sentinel 127\.0\.0\.1:\d+ responded: .*(?:NOAUTH|NOPERM|WRONGPASS).*redis\.sentinel\.password/,
    },
    {
      what: 'a wrong Sentinel password',
      lines: [`requirepass ${PASSWORD}`],
      change: { password: `${PASSWORD}-not` },
      message: /the Sentinel .*WRONGPASS.*redis\.sentinel\.password/,
    },
    {
      what: 'missing permissions of the Sentinel user',
      lines: [`user asker on >${PASSWORD} -@all +ping`],
      change: { username: 'asker', password: PASSWORD },
      message: /the Sentinel .*NOPERM.*sentinel\|get-master-addr-by-name/,
    },
    {
      what: 'an unknown primary name',
      lines: [],
      change: { name: 'other' },
      message: /watches no primary of the name "other"/,
    },
  ] as const) {
    it(`startup fails with ${what}, without a password in the message`, async () => {
      const primary = await startRedis()
      const server = await startRedis({ sentinel: [`sentinel monitor mymaster 127.0.0.1 ${primary.port} 1`, ...lines] })
      const sentinel = { name: 'mymaster', addresses: [server.url], ...change }
      const error = await rejectionOf(startRedisHost({ sentinel }))
      expect(error).to.be.instanceOf(StartError)
      expect(String(error)).to.match(message).and.not.include(PASSWORD)
    })
  }

  it('startup fails for a Redis configured as a Sentinel and names the right port', async () => {
    const { url } = await startRedis()
    const error = await rejectionOf(startRedisHost({ sentinel: { name: 'mymaster', addresses: [url] } }))
    expect(String(error)).to.match(/26379/)
  })

  it('checks the permissions of the Redis user against docs/redis.md at startup', async () => {
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
    primary.cli('--user', 'admin', '--pass', 'admin', '--no-auth-warning', 'ACL', 'SETUSER', 'mcp', '-zadd', '-xadd')
    const error = await rejectionOf(startNode({ url: '' }, { ...HOST_CONFIG, redis }))
    expect(String(error)).to.match(/NOPERM/)
  })
})
