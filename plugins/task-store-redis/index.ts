// Stores tasks in Redis, so that any node can run them.
import { definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { createTaskStore } from '../../core/transport.ts'
import {
  BUS_COMMANDS,
  busOf,
  claimOf,
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisHost,
  type RedisSections,
  type RedisSettings,
  redisConnection,
  redisStore,
  STORE_COMMANDS,
} from '../families/redis/index.ts'
import { demandSecrets } from '../families/stores/index.ts'

export function fillTaskStore(host: RedisHost, options: RedisSettings) {
  const redis = redisConnection(host, options, [...STORE_COMMANDS, ...BUS_COMMANDS])
  const { log, clock } = host
  host.provide('taskStore', createTaskStore(redisStore(redis), { log, clock, bus: busOf(host, redis) }))
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
  setup(host, options) {
    demandSecrets(host, 'tasks are for every node, but the keys that say whose they are')
    fillTaskStore(host, options).claim(claimOf(host))
  },
})
