// The plugin `session-store-redis`: stores sessions in Redis, so that any node can serve them.
import { definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { createSessionStore } from '../../core/transport.ts'
import {
  claimOf,
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisSections,
  redisConnection,
  redisStore,
  STORE_COMMANDS,
} from '../families/redis/index.ts'
import { demandSecrets } from '../families/stores/index.ts'

const OPTIONS = {
  type: 'object',
  description: 'Keeps the records of sessions in Redis: any node serves any session. Needs change-bus-redis.',
  additionalProperties: false,
  properties: { ...REDIS_PROPERTIES },
} as const

export interface SessionStoreRedisOptions extends OptionsOf<typeof OPTIONS> {}

export const sessionStoreRedis = definePlugin<SessionStoreRedisOptions, SessionStoreRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: OPTIONS,
  needs: ['peers'],
  provides: ['sessionStore'],
  setup(host, options) {
    demandSecrets(host, 'sessions are for every node, but the keys that sign their ids')
    const redis = redisConnection(host, options, STORE_COMMANDS)
    redis.claim(claimOf(host))
    host.provide('sessionStore', createSessionStore(redisStore(redis), { node: host.config.node, log: host.log }))
  },
})
