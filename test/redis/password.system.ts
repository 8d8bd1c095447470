// Tests `redis.password` as a function: calls per connection, renewal before expiry, and errors.
import { expect } from 'chai'
import { StartError } from '../../core/plugin.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { connectionsAt, startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'

const RIGHTS = '~mcp-host:* &* +@all'

/** Passwords that end, as those of clouds do: each is another one, and Redis knows only the newest. */
function createTokens(servers: readonly RedisServer[], lifetime: number) {
  const given: string[] = []
  const failing = { times: 0 }
  return {
    given,
    failing,
    async give() {
      if (failing.times-- > 0) throw new Error('the cloud is away')
      const password = `token-${given.length + 1}`
      for (const redis of servers) redis.cli('ACL', 'SETUSER', 'mcp', 'resetpass', `>${password}`)
      given.push(password)
      return { password, expires: new Date(Date.now() + lifetime) }
    },
  }
}

describe('redis.password as a function', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('is called for each connection; accepts a promise and a trailing line break', async () => {
    const redis = await startRedis({ acl: [`mcp on >token-0 ${RIGHTS}`] })
    let calls = 0
    const password = () => {
      const text = `token-${++calls}`
      redis.cli('ACL', 'SETUSER', 'mcp', 'resetpass', `>${text}`)
      return calls % 2 === 0 ? Promise.resolve(`${text}\n`) : text
    }
    const { connection, log } = await startRedisHost({ url: redis.url, username: 'mcp', password })
    await whenHealthy(connection)
    for (let cuts = 0; cuts < 5; cuts++) {
      const before = calls
      redis.cli('CLIENT', 'KILL', 'TYPE', 'normal')
      await eventually('a connection with another password', () => calls > before && connection.healthy)
    }
    expect(calls).to.be.at.least(6)
    expect(JSON.stringify(log)).to.not.include('token-')
  })

  it('renews the password on open connections before expiry without failed calls', async () => {
    const redis = await startRedis({ acl: [`mcp on >token-0 ${RIGHTS}`] })
    const tokens = createTokens([redis], 1_000)
    const { connection } = await startRedisHost({ url: redis.url, username: 'mcp', password: tokens.give })
    await whenHealthy(connection)
    const reader = await connection.duplicate()
    await reader.client.get(connection.key('read'))
    const first = connectionsAt(redis)
    let calls = 0
    const call = async () => {
      await connection.run(client => client.incr(connection.key('count')))
      calls++
      return tokens.given.length
    }
    await eventually('six passwords', call, count => count >= 6)
    expect(first).to.have.lengthOf(2)
    expect(connectionsAt(redis)).to.deep.equal(first)
    expect(redis.cli('GET', 'mcp-host:count')).to.deep.equal([`${calls}`])
    reader.close()
  })

  it('retries a failed renewal, logs a warning, and keeps the connection', async () => {
    const redis = await startRedis({ acl: [`mcp on >token-0 ${RIGHTS}`] })
    const tokens = createTokens([redis], 1_000)
    const { connection, log } = await startRedisHost({ url: redis.url, username: 'mcp', password: tokens.give })
    await whenHealthy(connection)
    const first = connectionsAt(redis)
    tokens.failing.times = 1
    const lines = () => log.filter(({ code }) => code === 'MH2320')
    await eventually('a line in the log', () => lines().length)
    const had = tokens.given.length
    await eventually('a new password', () => tokens.given.length > had)
    expect(lines()[0]?.['reason']).to.match(/redis\.password/)
    expect(lines()[0]?.level).to.equal('warn')
    expect(connectionsAt(redis)).to.deep.equal(first)
    expect(connection.healthy).to.equal(true)
  })

  it('readiness fails while the function throws, hangs or returns no password', async () => {
    const redis = await startRedis({ acl: ['mcp on >token ~mcp-host:* &* +@all'] })
    const bad: ReadonlyArray<readonly [() => unknown, RegExp]> = [
      [() => Promise.reject(new Error('no cloud')), /redis.password failed: no cloud/],
      [() => new Promise(() => undefined), /redis.password failed: nothing within 500 ms/],
      [() => ({ passwort: 'token' }), /must return a string or/],
      [() => ({ password: 'token', expires: 'soon' }), /must return a string or/],
      [() => '', /must return a string or/],
    ]
    for (const [give, reason] of bad) {
      let isBad = true
      const password = () => (isBad ? give() : 'token') as string
      const settings = { url: redis.url, username: 'mcp', password, commandTimeout: 500 }
      const { connection, log, close } = await startRedisHost(settings)
      const line = await eventually('a line in the log', () =>
        log.find(({ level, redis: name }) => level === 'warn' && name),
      )
      expect(String(line?.['reason'])).to.match(reason)
      expect(connection.healthy).to.equal(false)
      isBad = false
      await whenHealthy(connection)
      await close()
    }
  })

  it('startup fails when Redis rejects the password, which no message contains', async () => {
    const redis = await startRedis({ acl: [`mcp on >token ${RIGHTS}`] })
    const error = await rejectionOf(startRedisHost({ url: redis.url, username: 'mcp', password: () => 'secret-token' }))
    expect(error).to.be.instanceOf(StartError)
    expect(String(error))
      .to.match(/WRONGPASS.*redis\.password/)
      .and.not.include('secret-token')
  })

  it('two functions use separate connections', async () => {
    const redis = await startRedis({ acl: [`mcp on >token ${RIGHTS}`] })
    const [one, two] = [() => 'token', () => 'token']
    const own = { url: redis.url, username: 'mcp' }
    const { connections } = await startRedisHost(undefined, [
      { ...own, password: one },
      { ...own, password: one },
      { ...own, password: two },
    ])
    expect(new Set(connections).size).to.equal(2)
  })

  it('is called for every node of a Redis Cluster, at connect and before expiry', async () => {
    const nodes = await startRedisCluster()
    for (const node of nodes) node.cli('ACL', 'SETUSER', 'mcp', 'on', '>token-0', '~mcp-host:*', '&*', '+@all')
    const tokens = createTokens(nodes, 2_000)
    const [{ url }] = nodes
    const { connection } = await startRedisHost({ cluster: [url], username: 'mcp', password: tokens.give })
    await whenHealthy(connection)
    const first = nodes.map(connectionsAt)
    const had = tokens.given.length
    await eventually('two renewed passwords', () => tokens.given.length >= had + 2)
    expect(nodes.map(connectionsAt)).to.deep.equal(first)
    for (const node of nodes) node.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await whenHealthy(connection, false)
    const write = (index: number) => connection.run(client => client.set(connection.key(`n${index}`), '1'))
    await Promise.all(Array.from({ length: 20 }, (_, index) => write(index)))
  })

  it('works through a proxy that drops connections repeatedly', async () => {
    const redis = await startRedis({ acl: [`mcp on >token-0 ${RIGHTS}`] })
    const tokens = createTokens([redis], 60_000)
    const proxy = await startCuttingProxy(redis.url.replace('redis:', 'http:'))
    const url = proxy.url.replace('http:', 'redis:')
    const { connection } = await startRedisHost({ url, username: 'mcp', password: tokens.give })
    for (let round = 0; round < 5; round++) {
      await whenHealthy(connection)
      proxy.cutAll()
      await whenHealthy(connection, false)
    }
    await whenHealthy(connection)
    expect(tokens.given.length).to.be.at.least(6)
    await proxy.stop()
  })
})
