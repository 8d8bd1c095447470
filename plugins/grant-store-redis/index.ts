// Keeps in Redis what the authorization server of this host needs to know again, so that any node goes on with any login.
// docs/plugins/grant-store-redis.md.
import { type BuiltInOptions, definePlugin } from '../../core/index.ts'
import {
  claimOf,
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisHost,
  type RedisSections,
  type RedisSettings,
  redisConnection,
} from '../families/redis/index.ts'
import { demandSecrets } from '../families/stores/index.ts'
import { createRedisGrantStore } from './store.ts'

/** Where Redis is, unless the config's `redis` says it. */
export type GrantStoreRedisOptions = BuiltInOptions['grant-store-redis']

/** What is sent beside EVAL, in scripts too. */
export const GRANT_STORE_COMMANDS = [
  ...(['del', 'exists', 'get', 'hdel', 'hget', 'hincrby', 'hset', 'pexpire', 'set', 'time'] as const),
  ...(['zadd', 'zcard', 'zrange', 'zrangebyscore', 'zrem', 'zremrangebyscore'] as const),
] as const

/** For cluster-redis as well, which demands secrets and says whose keys these are by itself. */
export function fillGrantStore(host: RedisHost, options: RedisSettings) {
  const redis = redisConnection(host, options, GRANT_STORE_COMMANDS)
  host.fill('grantStore', createRedisGrantStore(redis))
  return redis
}

export const grantStoreRedis = definePlugin<GrantStoreRedisOptions, GrantStoreRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: {
    type: 'object',
    description:
      'Keeps logins and grants of the authorization server in Redis, so that a node goes on with what another began.',
    additionalProperties: false,
    properties: { ...REDIS_PROPERTIES },
  },
  provides: ['grantStore'],
  setup(host, options) {
    demandSecrets(host, 'grants are for every node, but the keys that seal them')
    fillGrantStore(host, options).claim(claimOf(host))
  },
})
