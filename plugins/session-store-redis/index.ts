// Keeps the records of sessions in Redis, so that any node serves any session. docs/plugins/session-store-redis.md.
import { type BuiltInOptions, definePlugin } from '../../core/index.ts'
import {
  claimOf,
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisSections,
  redisConnection,
} from '../families/redis/index.ts'
import { demandSecrets } from '../families/stores/index.ts'
import { createRedisSessionStore } from './store.ts'

/** Where Redis is, unless the config's `redis` says it. */
export type SessionStoreRedisOptions = BuiltInOptions['session-store-redis']

/** What is sent beside EVAL, in scripts too. */
export const SESSION_STORE_COMMANDS = [
  ...(['del', 'exists', 'hdel', 'hexists', 'hget', 'hgetall', 'hincrby', 'hmget', 'hset', 'hsetnx'] as const),
  ...(['pexpire', 'pttl', 'set', 'time', 'zadd', 'zcard', 'zincrby', 'zrange', 'zrangebyscore', 'zrem'] as const),
  ...(['zremrangebyscore', 'zrevrange', 'zscore'] as const),
] as const

export const sessionStoreRedis = definePlugin<SessionStoreRedisOptions, SessionStoreRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: {
    type: 'object',
    description: 'Keeps the records of sessions in Redis: any node serves any session. Needs change-bus-redis.',
    additionalProperties: false,
    properties: { ...REDIS_PROPERTIES },
  },
  needs: ['peers'],
  provides: ['sessionStore'],
  setup(host, options) {
    demandSecrets(host, 'sessions are for every node, but the keys that sign their ids')
    const redis = redisConnection(host, options, SESSION_STORE_COMMANDS)
    redis.claim(claimOf(host))
    host.fill('sessionStore', createRedisSessionStore(redis, host))
  },
})
