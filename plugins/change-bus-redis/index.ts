// Carries changes to every node and messages to single ones, over Redis Streams. docs/plugins/change-bus-redis.md.
import { definePlugin } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { REDIS_PROPERTIES, REDIS_SECTIONS, type RedisSections, redisConnection } from '../families/redis/index.ts'
import { createBus } from './bus.ts'
import { createPeers, createReading } from './peers.ts'

/** Commands besides EVAL, including those in scripts. */
export const CHANGE_BUS_COMMANDS = [
  ...(['exists', 'get', 'incr', 'pexpire', 'set', 'time', 'unlink'] as const),
  ...(['xadd', 'xrange', 'xread', 'xrevrange', 'xtrim'] as const),
] as const

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
    const redis = redisConnection(host, options, CHANGE_BUS_COMMANDS)
    const bus = createBus(redis, host.log)
    const peers = createPeers(redis, host)
    const reading = createReading(redis, { inbox: peers.inbox, bus, receive: peers.deliver, log: host.log })
    host.provide('changeBus', bus)
    host.provide('peers', peers)
    host.onStart(async () => {
      if (host.config.purpose === 'inspect') return
      await peers.begin()
      await reading.begin()
    })
    host.onClose(async () => {
      await bus.close()
      reading.close()
      await peers.leave()
    })
  },
})
