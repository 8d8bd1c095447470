// Stores the events of resumable streams in Redis, so that clients can reconnect to any node.
import { definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { createEventStore } from '../../core/transport.ts'
import {
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisSections,
  redisConnection,
  redisStore,
  STORE_COMMANDS,
} from '../families/redis/index.ts'
import { readStreamBounds, STREAM_PROPERTIES } from '../families/stores/index.ts'

export const EVENT_STORE_OPTIONS = {
  type: 'object',
  description: 'Keeps the events of streams in Redis: clients come back to any node.',
  additionalProperties: false,
  properties: {
    ...STREAM_PROPERTIES,
    ...REDIS_PROPERTIES,
  },
} as const

export interface EventStoreRedisOptions extends OptionsOf<typeof EVENT_STORE_OPTIONS> {}
export interface FilledEventStoreRedisOptions extends OptionsOf<typeof EVENT_STORE_OPTIONS, true> {}

export const eventStoreRedis = definePlugin<EventStoreRedisOptions, FilledEventStoreRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: EVENT_STORE_OPTIONS,
  provides: ['eventStore'],
  setup(host, options) {
    const bounds = readStreamBounds(host, options)
    host.provide('eventStore', createEventStore(redisStore(redisConnection(host, options, STORE_COMMANDS)), bounds))
  },
})
