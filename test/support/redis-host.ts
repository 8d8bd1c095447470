// A host whose plugins only share a Redis connection, for tests of the connection. Also the cleanup of all tests with hosts on
// Redis.
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import {
  REDIS_SECTIONS,
  type RedisConnection,
  type RedisSections,
  type RedisSettings,
  redisConnection,
} from '../../plugins/families/redis/index.ts'
import { type RedisServer, stopRedis } from './redis-server.ts'
import { type LogLine, startHost, stopHosts } from './start-host.ts'

export interface RedisHost {
  /** The connection of each plugin. */
  readonly connections: readonly RedisConnection[]
  readonly connection: RedisConnection
  /** The `host` argument of each plugin. */
  readonly plugin: InternalHost
  readonly url: string
  readonly log: readonly LogLine[]
  close(): Promise<void>
}

/**
 * One plugin for each entry of `options`; `redis` is the config section. Its default `commandTimeout` is long: on a busy machine
 * Redis can need seconds to respond. A test of the time limit sets a short one.
 */
export async function startRedisHost(
  redis: RedisSettings | undefined,
  options: readonly RedisSettings[] = [{}],
): Promise<RedisHost> {
  const connections: RedisConnection[] = []
  const hosts: InternalHost[] = []
  const user = (own: RedisSettings) =>
    definePlugin<Record<never, never>, RedisSections>({
      sections: REDIS_SECTIONS,
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup(host) {
        hosts.push(host)
        connections.push(redisConnection(host, own))
      },
    })()
  const { host, url, log } = await startHost({
    ...(redis && { redis: { commandTimeout: '20s', ...redis } }),
    toolsets: { none: [] },
    routes: { '/': { toolsets: 'none' } },
    plugins: Object.fromEntries(options.map((own, index) => [`user-${index}`, user(own)])),
  })
  const [connection] = connections
  const [plugin] = hosts
  if (!connection || !plugin) throw new Error('no plugin was set up')
  return { connections, connection, plugin, url, log, close: async () => void (await host.close({ grace: 0 })) }
}

/** Resolves once the connection is healthy, or no longer healthy. */
export function whenHealthy(connection: RedisConnection, healthy = true): Promise<void> {
  return new Promise(resolve => {
    if (connection.healthy === healthy) return resolve()
    const end = connection.onChange(now => {
      if (now !== healthy) return
      end()
      resolve()
    })
  })
}

/** Ids of the connections of such hosts to a Redis server. */
export const connectionsAt = (redis: RedisServer): string[] =>
  redis
    .cli('CLIENT', 'LIST')
    .filter(line => line.includes('name=mcp-host'))
    .map(line => line.split(' ')[0] ?? '')

/** For `after` and `afterEach`: closes hosts before their Redis server. */
export async function stopHostsAndRedis(): Promise<void> {
  await stopHosts()
  await stopRedis()
}
