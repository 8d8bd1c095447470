// A password that a function gives: asked for at each connection, and before it expires; what it does wrong is told.
import { expect } from 'chai'
import { StartError } from '../../core/index.ts'
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

describe('a password of Redis that a function gives', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('is another one for each connection, and a promise or a text with a line break behind it as well', async () => {
    const redis = await startRedis({ acl: [`mcp on >token-0 ${RIGHTS}`] })
    let calls = 0
    const password = () => {
      const text = `token-${++calls}`
      redis.cli('ACL', 'SETUSER', 'mcp', 'resetpass', `>${text}`)
      return calls % 2 === 0 ? Promise.resolve(`${text}\n`) : text
    }
    const { connection, log } = await startRedisHost({ url: redis.url, username: 'mcp', password })
    await whenHealthy(connection)
    let cuts = 0
    for (; cuts < 5; cuts++) {
      const before = calls
      redis.cli('CLIENT', 'KILL', 'TYPE', 'normal')
      await eventually('a connection with another password', () => calls > before && connection.healthy)
    }
    console.log(`      ${cuts} connections cut, ${calls} passwords asked for`)
    expect(calls).to.be.at.least(6)
    expect(JSON.stringify(log)).to.not.include('token-')
  })

  it('is given to Redis again on the open connections before it expires: no call fails, and none is cut', async () => {
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
    console.log(
      `      ${tokens.given.length} passwords on ${first.length} connections, ${calls} of ${calls} calls answered`,
    )
    expect(first).to.have.lengthOf(2)
    expect(connectionsAt(redis)).to.deep.equal(first)
    expect(redis.cli('GET', 'mcp-host:count')).to.deep.equal([`${calls}`])
    reader.close()
  })

  it('that cannot be renewed is asked for again, and told in a line; the connection goes on meanwhile', async () => {
    const redis = await startRedis({ acl: [`mcp on >token-0 ${RIGHTS}`] })
    const tokens = createTokens([redis], 1_000)
    const { connection, log } = await startRedisHost({ url: redis.url, username: 'mcp', password: tokens.give })
    await whenHealthy(connection)
    const first = connectionsAt(redis)
    tokens.failing.times = 1
    const lines = () => log.filter(({ message }) => message?.startsWith('Redis could not be given a new password'))
    await eventually('a line in the log', () => lines().length)
    const had = tokens.given.length
    await eventually('a new password', () => tokens.given.length > had)
    expect(lines()[0]?.['reason']).to.equal('the function redis.password gave no password: the cloud is away')
    expect(lines()[0]?.level).to.equal('warn')
    expect(connectionsAt(redis)).to.deep.equal(first)
    expect(connection.healthy).to.equal(true)
  })

  it('that throws, hangs, or gives nothing keeps the host from being ready, and is asked for again', async () => {
    const redis = await startRedis({ acl: ['mcp on >token ~mcp-host:* &* +@all'] })
    const bad: ReadonlyArray<readonly [() => unknown, RegExp]> = [
      [() => Promise.reject(new Error('no cloud')), /gave no password: no cloud/],
      [() => new Promise(() => undefined), /gave no password: nothing within 300 ms/],
      [() => ({ passwort: 'token' }), /neither a text nor/],
      [() => ({ password: 'token', expires: 'soon' }), /neither a text nor/],
      [() => '', /neither a text nor/],
    ]
    for (const [give, reason] of bad) {
      let isBad = true
      const password = () => (isBad ? give() : 'token') as string
      const settings = { url: redis.url, username: 'mcp', password, commandTimeout: 300 }
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
    console.log(`      ${bad.length} of ${bad.length} told, and ready once the function was right`)
  })

  it('that Redis does not accept stops the start, and is in no message', async () => {
    const redis = await startRedis({ acl: [`mcp on >token ${RIGHTS}`] })
    const error = await rejectionOf(startRedisHost({ url: redis.url, username: 'mcp', password: () => 'secret-token' }))
    expect(error).to.be.instanceOf(StartError)
    expect(String(error))
      .to.match(/WRONGPASS.*redis\.password/)
      .and.not.include('secret-token')
  })

  it('has connections of its own: two functions share none', async () => {
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

  it('is for every node of a Redis Cluster, at each connection and before it expires', async () => {
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
    console.log(`      ${tokens.given.length} passwords at 2 nodes, 20 of 20 writes after both were cut off`)
  })

  it('reaches a Redis behind a proxy that is cut again and again', async () => {
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
