// Tests operational changes and faults of Redis: moved address, replica, client limit, full disk, loading, and key
// eviction.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { at, startNode } from '../cluster/support/nodes.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisHost, stopHostsAndRedis, whenHealthy } from '../support/redis-host.ts'
import { AT_ONCE, startReplica } from '../support/redis-sentinel.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { initialize, openSession } from '../support/session-client.ts'
import { mountSmall, unmount } from '../support/small-disk.ts'
import type { StartedHost } from '../support/start-host.ts'

const config = {
  toolsets: { all: [defineTool({ name: 'hello', handler: () => 'hello' })] },
  routes: { '/': { toolsets: 'all' } },
}

async function healthOf({ url }: StartedHost) {
  const response = await fetch(`${url}/health`)
  const { reasons } = (await response.json()) as { reasons?: { redis?: string } }
  return `${response.status} ${reasons?.redis ?? 'ready'}`
}

const untilHealth = (host: StartedHost, wanted: string) =>
  eventually(
    `health of ${wanted}`,
    () => healthOf(host),
    found => found === wanted,
  )

const errorsOf = ({ log }: StartedHost) =>
  log.filter(({ level, redis }) => level === 'error' && redis !== undefined).map(({ reason, fix }) => ({ reason, fix }))

/** Leads each new connection to what is its target then; old ones stay where they are. */
async function startMovingProxy(first: RedisServer) {
  const sockets = new Set<Socket>()
  const proxy = { target: first.port, url: '', close: () => undefined as unknown }
  const server = createServer(client => {
    const redis = connect({ port: proxy.target, host: '127.0.0.1' })
    for (const [one, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
      one.pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  proxy.url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
  proxy.close = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return proxy
}

describe('Redis operations and faults', () => {
  // Several servers each, which elect and load at their own pace.
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  it('reconnects to the new server when writes to the previous one fail with READONLY', async () => {
    const old = await startRedis({ more: AT_ONCE })
    const next = await startReplica(old)
    const proxy = await startMovingProxy(old)
    const { connection, log } = await startRedisHost({ url: proxy.url, commandTimeout: '5s' })
    await whenHealthy(connection)
    await connection.run(client => client.set(connection.key('before'), 'kept'))
    const reader = await connection.duplicate()
    const read = () => reader.client.xRead({ key: 'inbox', id: '0' }, { BLOCK: 500 }).catch(() => undefined)
    await read()
    await eventually(
      'a replica in step',
      () => next.cli('GET', 'mcp-host:before'),
      ([value]) => value === 'kept',
    )
    next.cli('REPLICAOF', 'NO', 'ONE')
    proxy.target = next.port
    old.cli('REPLICAOF', '127.0.0.1', String(next.port))
    const write = async () => {
      await connection.run(client => client.set(connection.key('after'), 'here')).catch(() => undefined)
      return next.cli('GET', 'mcp-host:after')
    }
    await eventually('a write at the new one', write, ([value]) => value === 'here')
    await whenHealthy(connection)
    next.cli('XADD', 'inbox', '*', 'text', 'hello')
    await eventually('what was written at the new one', read, found => JSON.stringify(found ?? '').includes('hello'))
    expect(await connection.run(client => client.get(connection.key('before')))).to.equal('kept')
    const told = log.filter(({ level, redis }) => level === 'error' && redis !== undefined)
    expect(told).to.have.lengthOf(1)
    expect(String(told[0]?.['reason'])).to.match(/READONLY/)
    reader.close()
    proxy.close()
  })

  it('readiness fails on a replica until it is promoted', async () => {
    const replica = await startReplica(await startRedis({ more: AT_ONCE }))
    const node = await startNode(replica, config)
    await untilHealth(node, '503 Redis refuses: READONLY')
    expect((await initialize(`${node.url}/`)).status).to.equal(503)
    expect(errorsOf(node).map(({ fix }) => String(fix))).to.deep.equal([
      'this is a replica: use the address of the primary, or one that follows a failover',
    ])
    replica.cli('REPLICAOF', 'NO', 'ONE')
    await untilHealth(node, '200 ready')
    expect((await initialize(`${node.url}/`)).status).to.equal(200)
  })

  it('readiness fails at the client limit (maxclients) until connections close', async () => {
    const redis = await startRedis()
    const node = await startNode(redis, config)
    await untilHealth(node, '200 ready')
    const greedy = connect({ port: redis.port, host: '127.0.0.1' })
    greedy.resume().write('CONFIG SET maxclients 1\r\nCLIENT KILL TYPE normal\r\n')
    await untilHealth(node, '503 Redis refuses: CLIENTS')
    expect((await initialize(`${node.url}/`)).status).to.equal(503)
    const late = await startNode(redis, config)
    await untilHealth(late, '503 Redis refuses: CLIENTS')
    greedy.write('CONFIG SET maxclients 100\r\n')
    await untilHealth(node, '200 ready')
    await untilHealth(late, '200 ready')
    greedy.destroy()
    expect(errorsOf(node)).to.deep.equal([
      {
        reason: 'ERR max number of clients reached',
        fix: 'raise maxclients of Redis, or close other connections',
      },
    ])
  })

  it('rejects writes while the disk is full and serves existing sessions afterwards', async function () {
    const folder = mkdtempSync(join(tmpdir(), 'small-'))
    mountSmall(this, folder)
    try {
      const redis = await startRedis({ more: ['--dir', folder, '--appendonly', 'yes', '--appendfsync', 'everysec'] })
      const node = await startNode(redis, config)
      await untilHealth(node, '200 ready')
      const before = await openSession(`${node.url}/`)
      const filler = ['EVAL', "for i=1,50 do redis.call('SET','other:'..i, string.rep('x', 1000)) end", '0']
      await eventually(
        'a Redis that refuses',
        () => redis.cli(...filler).join(' ') + redis.cli('SET', 'a', 'b').join(' '),
        text => text.includes('MISCONF'),
      )
      await untilHealth(node, '503 Redis refuses: MISCONF')
      expect((await initialize(`${node.url}/`)).status).to.equal(503)
      expect(String(errorsOf(node)[0]?.reason)).to.match(/MISCONF.*(?:AOF|append)/i)
      execFileSync('mount', ['-o', 'remount,size=8m', folder])
      await untilHealth(node, '200 ready')
      for (const session of [before, await openSession(`${node.url}/`)])
        expect((await session.request('tools/call', { name: 'hello' })).status).to.equal(200)
    } finally {
      await stopHostsAndRedis()
      unmount(folder)
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('readiness fails while Redis loads its data; sessions are available afterwards', async () => {
    const redis = await startRedis({ persistent: true, slowStart: 500 })
    const node = await startNode(redis, config)
    const session = await openSession(`${node.url}/`)
    redis.cli('EVAL', "for i=1,20000 do redis.call('SET','other:'..i, string.rep('x', 100)) end", '0')
    await redis.kill()
    const started = redis.start()
    await untilHealth(node, '503 Redis refuses: LOADING')
    expect((await initialize(`${node.url}/`)).status).to.equal(503)
    await started
    await untilHealth(node, '200 ready')
    expect((await session.request('tools/call', { name: 'hello' })).status).to.equal(200)
  })

  it('key eviction: evicted sessions get 404 and the rest stays correct', async () => {
    const redis = await startRedis({ more: ['--maxmemory', '4mb', '--maxmemory-policy', 'allkeys-random'] })
    const [node, other] = [await startNode(redis, config), await startNode(redis, config)]
    const warned = node.log.filter(({ message }) => message?.startsWith('Redis evicts keys when it is full'))
    expect(warned).to.have.lengthOf(1)
    const sessions = []
    for (let count = 0; count < 60; count++) sessions.push(await openSession(`${node.url}/`))
    redis.cli('EVAL', "for i=1,6000 do redis.call('SET','other:'..i, string.rep('x', 1000)) end", '0')
    const tally = new Map<number, number>()
    // Each at a node that has not seen it.
    for (const session of sessions) {
      const { status, message } = await at(`${other.url}/`, session).request('tools/call', { name: 'hello' })
      tally.set(status, (tally.get(status) ?? 0) + 1)
      if (status === 200) expect(message.result.content[0].text).to.equal('hello')
    }
    for (const status of tally.keys()) expect(status).to.be.oneOf([200, 404, 503])
    const evicted = Number(
      redis
        .cli('INFO', 'stats')
        .find(line => line.startsWith('evicted_keys:'))
        ?.split(':')[1],
    )
    expect(evicted).to.be.at.least(1)
    expect((await initialize(`${node.url}/`)).status).to.equal(200)
  })
})
