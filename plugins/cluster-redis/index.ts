// The plugin `cluster-redis`: all Redis plugins that a cluster needs, with one set of options.
import { definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { changeBusRedis } from '../change-bus-redis/index.ts'
import { EVENT_STORE_OPTIONS, eventStoreRedis } from '../event-store-redis/index.ts'
import { REDIS_SECTIONS, type RedisSections } from '../families/redis/index.ts'
import { fillGrantStore } from '../grant-store-redis/index.ts'
import { sessionStoreRedis } from '../session-store-redis/index.ts'
import { fillTaskStore } from '../task-store-redis/index.ts'

const OPTIONS = {
  ...EVENT_STORE_OPTIONS,
  description:
    'Any node serves any session: change-bus-redis, and session-, event-, grant- and task-store-redis in one.',
} as const

/** Redis settings (default: the config's `redis`) and stream limits. */
export interface ClusterRedisOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledClusterRedisOptions extends OptionsOf<typeof OPTIONS, true> {}

export const clusterRedis = definePlugin<ClusterRedisOptions, FilledClusterRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: OPTIONS,
  storeKey: 'redis',
  provides: ['peers', 'sessionStore', 'changeBus', 'eventStore', 'grantStore', 'taskStore'],
  async setup(host, options) {
    const { ttl: _, maxEvents: __, maxBytes: ___, ...connection } = options
    await sessionStoreRedis.plugin.setup(host, connection)
    await changeBusRedis.plugin.setup(host, connection)
    await eventStoreRedis.plugin.setup(host, options)
    fillGrantStore(host, connection)
    fillTaskStore(host, connection)
  },
})
