// Stores tasks in Redis, so that any node can run them.
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

/** Commands besides EVAL, including those in scripts. */
const TASK_STORE_COMMANDS = [
  ...(['del', 'exists', 'get', 'hdel', 'hexists', 'hget', 'hgetall', 'hincrby', 'hmget', 'hset', 'pexpire'] as const),
  ...([
    'set',
    'time',
    'xadd',
    'xrange',
    'xread',
    'xrevrange',
    'zadd',
    'zcard',
    'zrange',
    'zrangebyscore',
    'zrem',
  ] as const),
  'zscore',
] as const

export async function fillTaskStore(host: RedisHost, options: RedisSettings) {
  const redis = redisConnection(host, options, TASK_STORE_COMMANDS)
  const { createRedisTaskStore } = await import('./store.ts')
  const store = createRedisTaskStore(redis, host.log)
  host.provide('taskStore', store)
  host.onClose(store.close)
  return redis
}

const OPTIONS = {
  type: 'object',
  description: 'Keeps tasks in Redis, where every node runs what another was asked for.',
  additionalProperties: false,
  properties: { ...REDIS_PROPERTIES },
} as const

export interface TaskStoreRedisOptions extends OptionsOf<typeof OPTIONS> {}

export const taskStoreRedis = definePlugin<TaskStoreRedisOptions, TaskStoreRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: OPTIONS,
  provides: ['taskStore'],
  async setup(host, options) {
    demandSecrets(host, 'tasks are for every node, but the keys that say whose they are')
    const redis = await fillTaskStore(host, options)
    redis.claim(claimOf(host))
  },
})
