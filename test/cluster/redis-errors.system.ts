// Tests Redis errors: readiness fails with one log message until Redis recovers, and permanent errors fail startup.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { StartError } from '../../core/plugin.ts'
import { BUS_COMMANDS, STORE_COMMANDS } from '../../plugins/families/redis/index.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { sendToRedis } from '../support/redis-command.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { needsRedis, type RedisServer, type RedisServerSettings, startRedis } from '../support/redis-server.ts'
import { initialize, openSession } from '../support/session-client.ts'
import type { StartedHost } from '../support/start-host.ts'
import { startNode } from './support/nodes.ts'

const PASSWORD = 'correct-horse-7'
const RIGHTS = '~mcp-host:* &* +@all'
const config = {
  toolsets: {
    all: [
      defineTool({ name: 'hello', handler: () => 'hello' }),
      defineTool({ name: 'change', handler: (_args, { host }) => `${host.resourceUpdated('page://one')}` }),
    ],
  },
  routes: { '/': { toolsets: 'all' } },
}

/** `path` is what follows the host in the URL, `user` what precedes it. */
const start = (redis: RedisServer, { user = '', path = '' } = {}) =>
  startNode({ url: `${redis.url.replace('://', `://${user}`)}${path}` }, config)

async function healthOf({ url }: StartedHost) {
  const response = await fetch(`${url}/health`)
  const { reasons, checks } = (await response.json()) as { reasons?: { redis?: string }; checks: { redis: boolean } }
  return { status: response.status, redis: checks.redis, reason: reasons?.redis }
}

/** How often Redis was examined: by scripts, or when a connection is refused, by its first command. */
const examinationsOf = async (redis: RedisServer) =>
  (await sendToRedis(redis, 'INFO', 'commandstats'))
    .flatMap(
      line => /^cmdstat_(?:auth|hello|eval|evalsha):calls=(\d+).*rejected_calls=(\d+)/.exec(line)?.slice(1) ?? [],
    )
    .reduce((sum, count) => sum + Number(count), 0)

/** Waits until the host has examined Redis again. */
async function untilExamined(redis: RedisServer) {
  const before = await examinationsOf(redis)
  await eventually('Redis is examined again', async () => (await examinationsOf(redis)) > before)
}

const untilHealth = (host: StartedHost, status: number, reason?: string) =>
  eventually(
    `health of ${status}, ${reason ?? 'with no reason'}`,
    () => healthOf(host),
    health => health.status === status && health.reason === reason,
  )

interface RunningCase {
  readonly code: string
  /** What the reason adds to it. */
  readonly about?: string
  readonly server?: RedisServerSettings
  readonly user?: string
  /** What is in the log of Redis's own words. */
  readonly says: RegExp
  readonly fix: RegExp
  begin(redis: RedisServer): unknown
  end(redis: RedisServer): unknown
  /** What makes it show, where nothing but a command does. */
  readonly uses?: (host: StartedHost) => Promise<unknown>
  /** The connection ends first, which is another line. */
  readonly ends?: boolean
  /** What an `initialize` gets meanwhile; 503, but for what it does not need. */
  readonly initialized?: number
}

const acl = [`mcp on >${PASSWORD} ${RIGHTS}`]
const killClients = (redis: RedisServer) => redis.cli('CLIENT', 'KILL', 'TYPE', 'normal')

const RUNNING: readonly RunningCase[] = [
  {
    code: 'OOM',
    says: /OOM command not allowed when used memory > 'maxmemory'/,
    fix: /maxmemory/,
    begin: redis => redis.cli('CONFIG', 'SET', 'maxmemory', '100kb'),
    end: redis => redis.cli('CONFIG', 'SET', 'maxmemory', '0'),
  },
  {
    code: 'NOREPLICAS',
    says: /NOREPLICAS Not enough good replicas to write/,
    fix: /min-replicas-to-write/,
    begin: redis => redis.cli('CONFIG', 'SET', 'min-replicas-to-write', '1'),
    end: redis => redis.cli('CONFIG', 'SET', 'min-replicas-to-write', '0'),
  },
  {
    code: 'READONLY',
    says: /READONLY You can't write against a read only replica/,
    fix: /address of the primary/,
    begin: async redis => redis.cli('REPLICAOF', '127.0.0.1', String(await freePort())),
    end: redis => redis.cli('REPLICAOF', 'NO', 'ONE'),
  },
  {
    code: 'MISCONF',
    says: /MISCONF/,
    fix: /cannot write to its disk/,
    begin(redis) {
      redis.cli('CONFIG', 'SET', 'save', '3600 1')
      rmSync(String(redis.cli('CONFIG', 'GET', 'dir')[1]), { recursive: true })
      redis.cli('BGSAVE')
    },
    end: redis => redis.cli('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no'),
  },
  {
    code: 'WRONGPASS',
    server: { acl },
    user: `mcp:${PASSWORD}@`,
    says: /WRONGPASS invalid username-password pair/,
    fix: /redis\.password/,
    begin(redis) {
      redis.cli('ACL', 'SETUSER', 'mcp', 'resetpass', '>another')
      killClients(redis)
    },
    ends: true,
    end: redis => redis.cli('ACL', 'SETUSER', 'mcp', 'resetpass', `>${PASSWORD}`),
  },
  {
    code: 'NOPERM',
    about: ' (xadd)',
    server: { acl },
    user: `mcp:${PASSWORD}@`,
    says: /NOPERM/,
    fix: /docs\/plugins\/cluster-redis\.md/,
    begin: redis => redis.cli('ACL', 'SETUSER', 'mcp', '-xadd'),
    end: redis => redis.cli('ACL', 'SETUSER', 'mcp', '+xadd'),
    uses: async ({ host }) => host.runtime.resourceUpdated('page://one'),
    initialized: 200,
  },
]

interface StartCase {
  readonly what: string
  readonly server?: RedisServerSettings
  readonly user?: string
  readonly path?: string
  readonly message: RegExp
}

const STOPPING: readonly StartCase[] = [
  {
    what: 'missing command permissions',
    server: { acl: [`mcp on >${PASSWORD} ${RIGHTS} -xadd -hincrby -zscore`] },
    user: `mcp:${PASSWORD}@`,
    message: /docs\/plugins\/cluster-redis\.md/,
  },
  {
    what: 'no permission for EVALSHA',
    server: { acl: [`mcp on >${PASSWORD} ${RIGHTS} -evalsha`] },
    user: `mcp:${PASSWORD}@`,
    message: /NOPERM this user has no permissions to run the 'evalsha' command/,
  },
  {
    what: 'no permission for the key prefix',
    server: { acl: [`mcp on >${PASSWORD} ~other:* &* +@all`] },
    user: `mcp:${PASSWORD}@`,
    message: /~mcp-host:\*/,
  },
  {
    what: 'a wrong password',
    server: { acl },
    user: `mcp:${PASSWORD}-not@`,
    message: /WRONGPASS.*redis\.password/,
  },
  {
    what: 'a missing password',
    server: { more: ['--requirepass', PASSWORD] },
    message: /NOAUTH.*redis\.password/,
  },
  {
    what: 'a database number out of range',
    path: '/99',
    message: /DB index/,
  },
  {
    what: 'a database number at a cluster node',
    server: { cluster: true },
    path: '/1',
    message: /SELECT.*redis: \{ cluster:/,
  },
  {
    what: 'the URL of a Sentinel',
    server: { sentinel: true },
    message: /unknown command .*; .*redis: { sentinel: { name/i,
  },
  {
    what: 'no EVALSHA command',
    server: { more: ['--rename-command', 'EVALSHA', ''] },
    message: /EVALSHA.*6\.2/i,
  },
  {
    what: 'no HELLO command, whose error quotes the password',
    server: { more: ['--rename-command', 'HELLO', '', '--requirepass', PASSWORD] },
    user: `:${PASSWORD}@`,
    message: /HELLO.*6\.2/i,
  },
]

describe('Redis errors', () => {
  before(function () {
    needsRedis(this)
  })
  afterEach(stopHostsAndRedis)

  for (const { code, about = '', server, user = '', says, fix, begin, end, uses, ends, initialized = 503 } of RUNNING) {
    it(`readiness fails, with one log message, until Redis recovers: ${code}`, async () => {
      const redis = await startRedis(server)
      const node = await start(redis, { user })
      const session = await openSession(`${node.url}/`)
      expect(await healthOf(node)).to.deep.equal({ status: 200, redis: true, reason: undefined })
      await begin(redis)
      await uses?.(node)
      const refused = await untilHealth(node, 503, `Redis refuses: ${code}${about}`)
      expect(refused.redis).to.equal(false)
      expect((await initialize(`${node.url}/`)).status).to.equal(initialized)
      // It is asked again meanwhile, and says the same.
      await untilExamined(redis)
      await end(redis)
      await untilHealth(node, 200)
      const served = await session.request('tools/call', { name: 'hello' })
      const told = node.log.filter(({ redis: name, level }) => name !== undefined && level !== 'debug')
      expect(served.status).to.equal(200)
      expect(told.map(({ level }) => level)).to.deep.equal(['info', ...(ends ? ['warn'] : []), 'error', 'info'])
      const line = told.find(({ level }) => level === 'error')
      expect(String(line?.['reason'])).to.match(says)
      expect(String(line?.['fix'])).to.match(fix)
      expect(JSON.stringify(node.log)).to.not.include(PASSWORD)
    })
  }

  it('logs the denied commands again when they change', async () => {
    const redis = await startRedis({ acl })
    const node = await start(redis, { user: `mcp:${PASSWORD}@` })
    redis.cli('ACL', 'SETUSER', 'mcp', '-hset')
    await untilHealth(node, 503, 'Redis refuses: NOPERM (hset)')
    redis.cli('ACL', 'SETUSER', 'mcp', '+hset', '-xadd')
    await node.host.runtime.resourceUpdated('page://one')
    await untilHealth(node, 503, 'Redis refuses: NOPERM (xadd)')
    await untilExamined(redis)
    redis.cli('ACL', 'SETUSER', 'mcp', '+xadd')
    await untilHealth(node, 200)
    const told = node.log.filter(({ level }) => level === 'error').map(({ reason }) => reason)
    expect(told).to.deep.equal(['hset', 'xadd'].map(name => `NOPERM: the Redis user cannot run ${name}`))
  })

  for (const { what, server, user = '', path = '', message } of STOPPING) {
    it(`startup fails with ${what}, without a password in the message`, async () => {
      const redis = await startRedis(server)
      const error = await rejectionOf(start(redis, { user, path }))
      expect(error).to.be.instanceOf(StartError)
      expect(String(error)).to.match(message).and.not.include(PASSWORD)
      expect(String((error as Error).cause)).to.not.include(PASSWORD)
    })
  }

  it('startup fails with a cluster node that is configured as a single Redis', async () => {
    const [one] = await startRedisCluster()
    const error = await rejectionOf(start(one))
    expect(String(error)).to.match(/MOVED .*redis: { cluster: \['redis:/)
    const whole = await startNode({ url: '' }, { ...config, redis: { cluster: [one.url] } })
    expect((await initialize(`${whole.url}/`)).status).to.equal(200)
  })

  it('logs a warning when maxmemory-policy evicts keys', async () => {
    for (const [policy, lines] of [
      ['allkeys-lru', 1],
      ['volatile-ttl', 1],
      ['noeviction', 0],
    ] as const) {
      const node = await start(await startRedis({ more: ['--maxmemory-policy', policy] }))
      const told = node.log.filter(({ message }) => message?.startsWith('Redis evicts keys'))
      expect(told.map(line => [line.level, line['policy']])).to.deep.equal(lines ? [['warn', policy]] : [])
      expect((await healthOf(node)).status).to.equal(200)
      await node.host.close({ grace: 0 })
    }
  })
})

describe('Redis permissions of plugins', () => {
  const listed = (page: string) => {
    const text = readFileSync(join(import.meta.dirname, '../../docs/plugins', page), 'utf8')
    const [, rule = ''] = /^user mcp on >password (.*)$/m.exec(text) ?? []
    return [...rule.matchAll(/\+(\w+)/g)].map(([, name]) => name).sort()
  }
  /** Of which no plugin's list has them. */
  const always = ['eval', 'evalsha', 'info']

  it('match the lists in their documentation', () => {
    // Checks that no other deployment, and no older version, uses the same keys.
    const claiming = ['pexpire', 'scan', 'zrange']
    const all = [...STORE_COMMANDS, ...BUS_COMMANDS, ...claiming, ...always]
    expect(listed('cluster-redis.md')).to.deep.equal([...new Set(all)].sort())
    expect(listed('grant-store-redis.md')).to.deep.equal(
      [...new Set([...STORE_COMMANDS, ...claiming, ...always])].sort(),
    )
    expect(listed('task-store-redis.md')).to.deep.equal([...new Set(all)].sort())
    expect(listed('event-store-redis.md')).to.deep.equal([...STORE_COMMANDS, ...always].sort())
  })
})
