// Keeps the events of resumable streams in Redis, so that a client comes back to any node and gets what it missed.
// docs/plugins/event-store-redis.md.
import {
  type BuiltInOptions,
  DURATION_PATTERN,
  definePlugin,
  type FilledOptions,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
  StartError,
} from '../../core/index.ts'
import { REDIS_PROPERTIES, REDIS_SECTIONS, type RedisSections, redisConnection } from '../families/redis/index.ts'
import { createRedisEventStore } from './store.ts'

/** Where Redis is, unless the config's `redis` says it, and how much of a stream is kept. */
export type EventStoreRedisOptions = BuiltInOptions['event-store-redis']

/** Shorter, and a stream is gone before a client can come back. */
const MIN_TTL = 1_000

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
      ttl: {
        type: ['string', 'number'],
        pattern: DURATION_PATTERN,
        minimum: MIN_TTL,
        default: '1h',
        description: 'How long after its last event a stream can be resumed.',
      },
      maxEvents: {
        type: 'integer',
        minimum: 1,
        default: 10_000,
        description: 'Events of one stream; the oldest go first.',
      },
      maxBytes: {
        type: ['string', 'number'],
        pattern: SIZE_PATTERN,
        minimum: 1,
        default: '4mb',
        description: 'Bytes of one stream; its last event is kept whatever its size.',
      },
      ...REDIS_PROPERTIES,
    },
  },
  provides: ['eventStore'],
  setup(host, options) {
    const { ttl, maxEvents, maxBytes } = options
    const lifetime = parseDuration(ttl)
    if (lifetime < MIN_TTL) {
      throw new StartError('it is less than 1s; no client comes back so soon', { at: [...host.at, 'ttl'] })
    }
    const bounds = { ttl: lifetime, maxEvents, maxBytes: parseSize(maxBytes) }
    host.fill('eventStore', createRedisEventStore(redisConnection(host, options, EVENT_STORE_COMMANDS), bounds))
  },
})
