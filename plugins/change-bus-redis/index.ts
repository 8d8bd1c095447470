// Carries changes to every node and messages to single ones, over Redis Streams. docs/plugins/change-bus-redis.md.
import { definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { createChangeBus, createPeers } from '../../core/transport.ts'
import {
  BUS_COMMANDS,
  busOf,
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisSections,
  redisConnection,
} from '../families/redis/index.ts'

const OPTIONS = {
  type: 'object',
  description: 'Brings changes to every node, and what concerns one node to that node, over Redis.',
  additionalProperties: false,
  properties: { ...REDIS_PROPERTIES },
} as const

export interface ChangeBusRedisOptions extends OptionsOf<typeof OPTIONS> {}

export const changeBusRedis = definePlugin<ChangeBusRedisOptions, ChangeBusRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: OPTIONS,
  provides: ['peers', 'changeBus'],
  setup(host, options) {
    const bus = busOf(host, redisConnection(host, options, BUS_COMMANDS))
    host.provide('changeBus', createChangeBus(bus))
    host.provide('peers', createPeers(bus))
  },
})
