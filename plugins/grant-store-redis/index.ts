// Stores logins and grants in Redis, so that any node can continue a login.
import { definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
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

/** Commands besides EVAL, including those in scripts. */
export const GRANT_STORE_COMMANDS = [
  ...(['del', 'exists', 'get', 'hdel', 'hget', 'hincrby', 'hset', 'pexpire', 'set', 'time'] as const),
  ...(['zadd', 'zcard', 'zrange', 'zrangebyscore', 'zrem', 'zremrangebyscore'] as const),
] as const

export function fillGrantStore(host: RedisHost, options: RedisSettings) {
  const redis = redisConnection(host, options, GRANT_STORE_COMMANDS)
  host.provide('grantStore', createRedisGrantStore(redis))
  return redis
}

const OPTIONS = {
  type: 'object',
  description:
    'Keeps logins and grants of the authorization server in Redis, so that a node goes on with what another began.',
  additionalProperties: false,
  properties: { ...REDIS_PROPERTIES },
} as const

export interface GrantStoreRedisOptions extends OptionsOf<typeof OPTIONS> {}

export const grantStoreRedis = definePlugin<GrantStoreRedisOptions, GrantStoreRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: OPTIONS,
  provides: ['grantStore'],
  setup(host, options) {
    demandSecrets(host, 'grants are for every node, but the keys that seal them')
    fillGrantStore(host, options).claim(claimOf(host))
  },
})
