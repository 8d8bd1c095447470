// The shared Redis connection of plugins: settings, round trips, outages, reconnection, ACL, TLS and Redis Cluster.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { examineConfig } from '../../core/create-host.ts'
import { HostError } from '../../core/index.ts'
import { StartError } from '../../core/plugin.ts'
import { type RedisSettings, redisScript } from '../../plugins/families/redis/index.ts'
import { backOff } from '../../plugins/families/redis/link.ts'
import { type ResolvedRedis, resolveRedis } from '../../plugins/families/redis/settings.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { inPath, needsProgram } from '../support/needs-program.ts'
import { connectionsAt, startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { createTestLog } from '../support/start-host.ts'

const PASSWORD = 'correct-horse-7'

before(function () {
  needsRedis(this)
})
after(stopHostsAndRedis)

const untilClusterIsWell = (redis: RedisServer) =>
  eventually(
    'a cluster that serves all slots',
    () => redis.cli('cluster', 'info'),
    lines => lines.some(line => line.startsWith('cluster_state:ok')),
  )

describe('mcp-host doctor --config', () => {
  const examine = (url: string) => {
    const config = {
      server: { name: 'a', version: '1.0.0' },
      secrets: ['a secret for tests, long enough to be one'],
      redis: { url },
      toolsets: { all: [] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, 'cluster-redis': {} },
    }
    const loaded = { file: 'config', config, locate: () => undefined, isInline: true as const }
    return examineConfig(loaded, createTestLog())
  }

  it('connects to Redis and leaves no keys', async () => {
    const redis = await startRedis()
    try {
      const [finding] = await examine(redis.url)
      expect(finding).to.include({ check: 'cluster-redis: Redis', level: 'ok' })
      expect((await redis.cli('keys', '*')).join('')).to.equal('')
    } finally {
      await redis.remove()
    }
  })

  it('reports a Redis that does not respond, with the fix', async () => {
    const [finding] = await examine('redis://127.0.0.1:1')
    expect(finding).to.include({ level: 'wrong', text: 'redis://127.0.0.1:1: Redis does not respond' })
    expect(finding?.fix).to.match(/correct `redis`/)
  })
})

/** What a promise is rejected with. */
const refusal = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    value => expect.fail(`resolved with ${JSON.stringify(value)}`),
    error => error,
  )

const expectUnavailable = (error: unknown) => {
  expect(HostError.is(error), String(error)).to.equal(true)
  const { status, headers, detail } = error as HostError
  expect({ status, headers }).to.deep.equal({ status: 503, headers: { 'Retry-After': '2' } })
  expect(detail).to.not.match(/127\.0\.0\.1|redis:/)
}

describe('Redis connection settings', () => {
  const resolve = (options: RedisSettings, redis?: RedisSettings): ResolvedRedis =>
    resolveRedis(
      {
        name: 'event-store-redis',
        config: { at: ['plugins', 'event-store-redis'], directory: '/', section: () => redis as never },
      },
      options,
    )
  const FROM_CONFIG = { url: 'redis://config:6380', keyPrefix: 'ours:' }

  it('merge plugin options into the redis section of the config', () => {
    const { addresses, keyPrefix, commandTimeout } = resolve({ commandTimeout: '2s' }, FROM_CONFIG)
    expect({ addresses, keyPrefix, commandTimeout }).to.deep.equal({
      addresses: [{ host: 'config', port: 6380 }],
      keyPrefix: 'ours:',
      commandTimeout: 2_000,
    })
  })

  it('use only plugin options if the plugin names a Redis, so no password leaks', () => {
    const own = resolve({ url: 'redis://own' }, { ...FROM_CONFIG, username: 'config', password: PASSWORD })
    expect(own).to.deep.include({ username: undefined, password: undefined, keyPrefix: 'mcp-host:' })
    expect(own.addresses).to.deep.equal([{ host: 'own', port: 6379 }])
  })

  it('read user, password and database from the URL and hide them from the name', () => {
    const { username, password, database, name } = resolve({ url: 'redis://mcp:p%40ss@[::1]:7000/3' })
    expect({ username, password, database, name }).to.deep.equal({
      username: 'mcp',
      password: 'p@ss',
      database: 3,
      name: 'redis://[::1]:7000/3',
    })
  })

  for (const [why, options, message] of [
    ['missing Redis settings', {}, 'no Redis is configured'],
    ['a url with a cluster', { url: 'redis://a', cluster: ['redis://b'] }, 'a url and a cluster; set one of them'],
    [
      'a url with a cluster and a sentinel',
      { url: 'redis://a', cluster: ['redis://b'], sentinel: { name: 'a', addresses: ['redis://c'] } },
      'and a sentinel',
    ],
    [
      'a database in a Sentinel URL',
      { sentinel: { name: 'a', addresses: ['redis://a/1'] } },
      'write redis.sentinel.database',
    ],
    [
      'Sentinels with different credentials',
      { sentinel: { name: 'a', addresses: [`redis://:${PASSWORD}@a`, 'redis://b'] } },
      'addresses of redis.sentinel',
    ],
    ['a certificate without a key', { url: 'rediss://a', tls: { cert: '-----BEGIN' } }, 'go together'],
    ['TLS without rediss', { url: 'redis://a', tls: { servername: 'a' } }, 'requires a rediss:// URL'],
    ['another scheme', { url: `http://a:${PASSWORD}@b` }, 'must begin with redis://'],
    ['an invalid URL', { url: `redis//:${PASSWORD}` }, 'the URL of Redis is invalid'],
    ['a password with a stray %', { url: `redis://:${PASSWORD}%zz@a` }, 'percent-encode special characters'],
    ['a password with a slash', { url: `redis://:${PASSWORD}/more@a` }, 'percent-encode special characters'],
    ['a URL path that is not a database number', { url: `redis://a/${PASSWORD}` }, 'is not a database number'],
    [
      'a Sentinel URL',
      { url: `redis+sentinel://:${PASSWORD}@a:26379/main` },
      "write redis: { sentinel: { name: 'mymaster'",
    ],
    ['a Unix socket URL', { url: `unix://:${PASSWORD}@/run/redis.sock` }, 'Unix socket'],
    ['a cluster URL scheme', { url: `redis-cluster://:${PASSWORD}@a` }, "write redis: { cluster: ['redis://...'] }"],
    ['a short timeout', { url: 'redis://a', commandTimeout: 10 }, 'less than 100 ms'],
    ['a database in a cluster URL', { cluster: ['redis://a/1'] }, 'no numbered databases'],
    [
      'cluster nodes with different credentials',
      { cluster: [`redis://:${PASSWORD}@a`, 'redis://b'] },
      'one scheme, user and password',
    ],
    ['a missing CA file', { url: 'rediss://a', tls: { ca: 'no-such-file.pem' } }, 'redis.tls.ca'],
  ] as const satisfies ReadonlyArray<readonly [string, object, string]>) {
    it(`reject ${why}, without a password in the message`, () => {
      expect(() => resolve(options as RedisSettings))
        .to.throw(StartError, "plugins['event-store-redis']: ")
        .with.property('message')
        .that.includes(message)
        .and.does.not.include(PASSWORD)
    })
  }

  it('back off exponentially up to 2 s, with jitter', () => {
    expect([0, 1, 2, 5, 6, 1_000].map(retries => backOff(retries, () => 1))).to.deep.equal([
      50, 100, 200, 1_600, 2_000, 2_000,
    ])
    expect(backOff(1_000, () => 0)).to.equal(1_000)
  })
})

describe('Redis connection', () => {
  it('is shared by the plugins of a host, and closes with the host', async () => {
    const redis = await startRedis()
    const clients = () => connectionsAt(redis).length
    const { connections, close } = await startRedisHost({ url: redis.url, commandTimeout: '5s' }, [
      {},
      {},
      { commandTimeout: 5_000 },
    ])
    expect(new Set(connections).size).to.equal(1)
    expect(clients()).to.equal(1)
    await close()
    expect(clients()).to.equal(0)
  })

  it('needs one round trip for the commands of one event loop turn', async () => {
    const redis = await startRedis()
    const { connection } = await startRedisHost({ url: redis.url })
    const count = async (act: () => Promise<unknown>) => {
      await new Promise(resolve => setImmediate(resolve))
      const before = connection.roundTrips
      await act()
      return connection.roundTrips - before
    }
    const key = connection.key('counted')
    const script = redisScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
    const together = await count(() => Promise.all(Array.from({ length: 100 }, () => connection.client.incr(key))))
    const inTurn = await count(async () => {
      for (let index = 0; index < 3; index++) await connection.run(client => client.incr(key))
    })
    const unknownScript = await count(() => connection.evaluate(script, [key], ['10']))
    const knownScript = await count(() => connection.evaluate(script, [key], ['10']))
    expect({ together, inTurn, unknownScript, knownScript }).to.deep.equal({
      together: 1,
      inTurn: 3,
      unknownScript: 2,
      knownScript: 1,
    })
    expect(redis.cli('get', 'mcp-host:counted')).to.deep.equal(['123'])
  })

  it('uses a separate client for blocking reads', async () => {
    const redis = await startRedis()
    const { connection } = await startRedisHost({ url: redis.url })
    const reader = await connection.duplicate()
    const reading = reader.client.xRead({ key: 'inbox', id: '$' }, { BLOCK: 4_000, COUNT: 1 })
    // Once it blocks, what is written is read.
    await eventually(
      'a client that reads the bus',
      () => redis.cli('client', 'list'),
      lines => lines.some(line => line.includes('cmd=xread')),
    )
    await connection.run(client => client.xAdd('inbox', '*', { text: 'hello' }))
    expect(JSON.stringify(await reading)).to.include('hello')
    reader.close()
  })

  it('passes Redis errors of invalid commands through', async () => {
    const redis = await startRedis()
    const { connection } = await startRedisHost({ url: redis.url })
    await connection.run(client => client.set('text', 'text'))
    const error = await refusal(connection.run(client => client.xAdd('text', '*', { name: 'value' })))
    expect(HostError.is(error)).to.equal(false)
    expect(String(error)).to.include('WRONGTYPE')
  })
})

describe('Redis connection during an outage', () => {
  it('lets the host start but not ready, refuses with 503, and connects later', async () => {
    const port = await freePort()
    const { connection, plugin, log } = await startRedisHost({
      url: `redis://mcp:${PASSWORD}@127.0.0.1:${port}`,
      commandTimeout: 2_000,
    })
    expect((await plugin.checkReadiness()).checks).to.include({ redis: false })
    expectUnavailable(await refusal(connection.run(client => client.get('key'))))
    const redis = await startRedis({ port, acl: [`mcp on >${PASSWORD} ~* +@all`, 'default off'] })
    await whenHealthy(connection)
    expect((await plugin.checkReadiness()).checks).to.include({ redis: true })
    expect(await connection.run(client => client.get('key'))).to.equal(null)
    const lines = log.filter(({ redis: name }) => name !== undefined && log)
    const told = lines.filter(({ level }) => level !== 'debug').map(({ message }) => message)
    expect(told).to.deep.equal(['Redis does not respond; retrying', 'Redis is back'])
    expect(lines.find(({ code }) => code === 'MH2304')?.['fix']).to.match(/^start Redis, or correct `redis`/)
    expect(JSON.stringify(log)).to.include('ECONNREFUSED').and.not.include(PASSWORD)
    await redis.remove()
  })

  it('accepts a password or URL from a secret file with a trailing newline', async () => {
    const redis = await startRedis({ acl: [`mcp on >${PASSWORD} ~* +@all`, 'default off'] })
    const [, place] = redis.url.split('//')
    let connected = 0
    for (const end of ['\n', '\r\n']) {
      for (const settings of [
        { url: redis.url, username: 'mcp', password: `${PASSWORD}${end}` },
        { url: `redis://mcp:${PASSWORD}@${place}${end}` },
      ]) {
        const { connection, close } = await startRedisHost(settings)
        await whenHealthy(connection)
        connected += 1
        await close()
      }
    }
    expect(connected).to.equal(4)
    await redis.remove()
  })

  it('queues commands for a short time after a disconnect', async () => {
    const redis = await startRedis({ persistent: true })
    const { connection } = await startRedisHost({ url: redis.url })
    await connection.run(client => client.set('key', 'kept'))
    await redis.kill()
    await whenHealthy(connection, false)
    const asked = connection.run(client => client.get('key'))
    await redis.start()
    expect(await asked).to.equal('kept')
  })

  it('refuses commands in time while Redis hangs, and recovers without a host restart', async () => {
    const redis = await startRedis()
    const { connection, plugin } = await startRedisHost({ url: redis.url, commandTimeout: 3_000 })
    redis.pause()
    const errors = await Promise.all(
      Array.from({ length: 50 }, () => refusal(connection.run(client => client.incr('late')))),
    )
    for (const error of errors) expectUnavailable(error)
    // Found out by a beat of its own, which has as long.
    await whenHealthy(connection, false)
    expect((await plugin.checkReadiness()).checks).to.include({ redis: false })
    redis.resume()
    await whenHealthy(connection)
    const count = Number(await connection.run(client => client.incr('asked')))
    expect(count).to.equal(1)
  })

  it('returns a response that arrived while the event loop was blocked beyond the time limit', async () => {
    const limit = 2_000
    const redis = await startRedis()
    const { connection } = await startRedisHost({ url: redis.url })
    await whenHealthy(connection)
    const began = performance.now()
    const answer = connection.run(client => client.incr('key'), limit)
    // The client writes at the end of this turn of the event loop. Responses are read in the next one, after the timers.
    for (let count = 0; count < 100; count++) await undefined
    await nextTurn()
    // Redis executes commands in the order of their arrival: it responds to `incr` before it responds to `get`.
    expect(redis.cli('get', 'key')).to.deep.equal(['1'])
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, began + limit + 100 - performance.now())
    expect(await answer).to.equal(1)
  })

  it('refuses in-flight commands of a cut connection and answers later ones', async () => {
    const redis = await startRedis()
    // Of every fifth packet from Redis three bytes arrive, and then nothing: what it answers was done all the same.
    let packets = 0
    const proxy = await startCuttingProxy(redis.url, { cutter: () => () => (++packets % 5 === 0 ? 3 : undefined) })
    const { connection } = await startRedisHost({ url: proxy.url.replace('http:', 'redis:') })
    let [answered, refused] = [0, 0]
    for (let round = 0; round < 30; round++) {
      const asked = Array.from({ length: 20 }, () => connection.run(client => client.incr('key')))
      for (const outcome of await Promise.allSettled(asked)) {
        if (outcome.status === 'fulfilled') answered++
        else {
          expectUnavailable(outcome.reason)
          refused++
        }
      }
    }
    const [done] = redis.cli('get', 'key')
    expect(answered + refused).to.equal(600)
    expect(answered).to.be.at.least(200).and.below(Number(done))
    expect(refused).to.be.at.least(60)
    await proxy.stop()
  })

  it('reconnects after a failover to a replica and refuses the in-flight write', async () => {
    const redis = await startRedis()
    const { connection } = await startRedisHost({ url: redis.url })
    const clientId = () => connectionsAt(redis)[0]
    const first = clientId()
    redis.cli('replicaof', '127.0.0.1', String(await freePort()))
    expectUnavailable(await refusal(connection.run(client => client.set('key', 'value'))))
    redis.cli('replicaof', 'no', 'one')
    await connection.run(client => client.set('key', 'value'))
    expect(clientId()).to.not.equal(first)
  })
})

describe('Redis authentication', () => {
  const LEAST = '~mcp-host:* -@all +eval +evalsha +time +hset +pexpire +get'

  it('works for an ACL user with the minimal permissions', async () => {
    const redis = await startRedis({ acl: [`mcp on >${PASSWORD} ${LEAST}`] })
    const { connection } = await startRedisHost({ url: redis.url, username: 'mcp', password: PASSWORD })
    expect(await connection.run(client => client.get(connection.key('key')))).to.equal(null)
    expectUnavailable(await refusal(connection.run(client => client.get('of another'))))
  })

  it('fails startup with a wrong password, without a password in the message', async () => {
    const redis = await startRedis({ acl: [`mcp on >${PASSWORD} ${LEAST}`, 'default off'] })
    const wrong = `${PASSWORD}-not`
    for (const settings of [{ url: redis.url, username: 'mcp', password: wrong }, { url: redis.url }]) {
      const error = await refusal(startRedisHost(settings))
      expect(error).to.be.instanceOf(StartError)
      expect(String(error))
        .to.match(/(WRONGPASS|NOAUTH).*redis\.password/)
        .and.not.include(PASSWORD)
    }
  })
})

describe('Redis TLS', () => {
  before(function () {
    needsProgram(this, 'openssl', 'apt-get install openssl')
  })

  it('accepts only a trusted certificate', async () => {
    expect(inPath('openssl')).to.equal(true)
    const redis = await startRedis({ tls: true })
    const trusting = await startRedisHost({ url: redis.url, ...(redis.ca && { tls: { ca: redis.ca } }) })
    await trusting.connection.run(client => client.set('key', 'over TLS'))
    expect(redis.cli('get', 'key')).to.deep.equal(['over TLS'])
    const { connection, log } = await startRedisHost({ url: redis.url, commandTimeout: 5_000 })
    await eventually('the reason is logged', () => /self-signed certificate/.test(JSON.stringify(log)))
    expectUnavailable(await refusal(connection.run(client => client.get('key'))))
  })
})

describe('Redis Cluster connection', () => {
  it('handles several keys of one hash tag in one command', async () => {
    const redis = await startRedis({ cluster: true })
    redis.cli('cluster', 'addslots', ...Array.from({ length: 16_384 }, (_, slot) => String(slot)))
    await untilClusterIsWell(redis)
    const { connection } = await startRedisHost({ cluster: [redis.url] })
    await whenHealthy(connection)
    const keys = ['a', 'b'].map(part => connection.key('{a session}', part))
    const script = redisScript(`return redis.call('MSET', KEYS[1], 'one', KEYS[2], 'two')`)
    await connection.evaluate(script, keys, [])
    expect(await connection.run(client => client.get(keys[1] ?? ''))).to.equal('two')
    await redis.kill()
    await whenHealthy(connection, false)
    await redis.start()
    // It says itself that it is not whole at first.
    await whenHealthy(connection)
    await untilClusterIsWell(redis)
    expect(await connection.run(client => client.get(keys[1] ?? ''))).to.equal(null)
  })
})
