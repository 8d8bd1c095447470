// Keeps the events of resumable streams in Redis, so that a client comes back to any node and gets what it missed.
// docs/plugins/event-store-redis.md.
import { type BuiltInOptions, definePlugin, type FilledOptions } from '../../core/index.ts'
import { REDIS_PROPERTIES, REDIS_SECTIONS, type RedisSections, redisConnection } from '../families/redis/index.ts'
import { readStreamBounds, STREAM_PROPERTIES } from '../families/stores/index.ts'
import { createRedisEventStore } from './store.ts'

/** Where Redis is, unless the config's `redis` says it, and how much of a stream is kept. */
export type EventStoreRedisOptions = BuiltInOptions['event-store-redis']

/** What is sent beside EVAL, in scripts too. */
export const EVENT_STORE_COMMANDS = [
  ...(['del', 'hget', 'hmget', 'hset', 'pexpire', 'sadd', 'smembers', 'srem', 'time'] as const),
  ...(['xadd', 'xlen', 'xrange', 'xtrim'] as const),
] as const

export const eventStoreRedis = definePlugin<EventStoreRedisOptions, FilledOptions['event-store-redis'], RedisSections>({
  sections: REDIS_SECTIONS,
  options: {
    type: 'object',
    description: 'Keeps the events of streams in Redis: clients come back to any node.',
    additionalProperties: false,
    properties: {
      ...STREAM_PROPERTIES,
      ...REDIS_PROPERTIES,
    },
  },
  provides: ['eventStore'],
  setup(host, options) {
    const bounds = readStreamBounds(host, options)
    host.fill('eventStore', createRedisEventStore(redisConnection(host, options, EVENT_STORE_COMMANDS), bounds))
  },
})
