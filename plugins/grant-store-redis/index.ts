// Stores logins and grants in Redis, so that any node can continue a login.
import { createGrantStore } from '../../core/auth.ts'
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
  redisStore,
  STORE_COMMANDS,
} from '../families/redis/index.ts'
import { demandSecrets } from '../families/stores/index.ts'

export function fillGrantStore(host: RedisHost, options: RedisSettings) {
  const redis = redisConnection(host, options, STORE_COMMANDS)
  host.provide('grantStore', createGrantStore(redisStore(redis)))
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
