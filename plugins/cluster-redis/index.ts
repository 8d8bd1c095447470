// The plugin `cluster-redis`, which keeps everything in Redis, and a plugin for each part: sessions, changes, streams, grants, tasks.

import { closed, definePlugin, type InternalExamination } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { createChangeBus, createEventStore, createPeers, createSessionStore } from '../../core/transport.ts'
import { createGrantStore } from '../families/grant-store/index.ts'
import {
  BUS_COMMANDS,
  busOf,
  examineRedis,
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisConnection,
  type RedisHost,
  type RedisSections,
  redisConnection,
  redisStore,
  STORE_COMMANDS,
} from '../families/redis/index.ts'
import { claimOf, readStreamLimits, requireSecrets, STREAM_PROPERTIES } from '../families/stores/index.ts'
import { createTaskStore } from '../families/task-store/index.ts'

const ALL_COMMANDS = [...STORE_COMMANDS, ...BUS_COMMANDS]
const OF_SESSIONS = 'sessions are for every node, but the keys that sign their ids'

const STREAM_OPTIONS = closed({ ...STREAM_PROPERTIES, ...REDIS_PROPERTIES })

export const EVENT_STORE_OPTIONS = {
  ...STREAM_OPTIONS,
  description: 'Stores stream events in Redis: clients can resume at any node.',
} as const

const CLUSTER_OPTIONS = {
  ...STREAM_OPTIONS,
  description: 'Any node serves any session. Includes change-bus-redis and the session, event, grant and task stores.',
} as const

/** Redis settings (default: the config's `redis`) and stream limits. */
export interface ClusterRedisOptions extends OptionsOf<typeof CLUSTER_OPTIONS> {}
export interface FilledClusterRedisOptions extends OptionsOf<typeof CLUSTER_OPTIONS, true> {}

const connectionIn = ({ ttl: _, maxEvents: __, maxBytes: ___, ...connection }: FilledClusterRedisOptions) => connection

export const clusterRedis = definePlugin<ClusterRedisOptions, FilledClusterRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: CLUSTER_OPTIONS,
  storeKey: 'redis',
  provides: ['store'],
  setup(host, options) {
    requireSecrets(host, OF_SESSIONS)
    const redis = redisConnection(host, connectionIn(options), ALL_COMMANDS)
    redis.claim(claimOf(host))
    const limits = { streams: readStreamLimits(host, options) }
    host.provide('store', { ...redisStore(redis), bus: busOf(host, redis), limits })
  },
  examine: (options, about) => examineRedis(connectionIn(options), about as InternalExamination),
})

export const eventStoreRedis = definePlugin<ClusterRedisOptions, FilledClusterRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: EVENT_STORE_OPTIONS,
  provides: ['eventStore'],
  setup(host, options) {
    const limits = readStreamLimits(host, options)
    const redis = redisConnection(host, connectionIn(options), STORE_COMMANDS)
    host.provide('eventStore', createEventStore(redisStore(redis), limits))
  },
  examine: (options, about) => examineRedis(connectionIn(options), about as InternalExamination),
})

const CONNECTION_OPTIONS = closed({ ...REDIS_PROPERTIES })

/** Redis settings. Default: the config's `redis`. */
export interface RedisPartOptions extends OptionsOf<typeof CONNECTION_OPTIONS> {}

interface Part {
  readonly description: string
  readonly provides: readonly string[]
  readonly needs?: readonly string[]
  readonly commands: Parameters<typeof redisConnection>[2]
  /** Start of the error for missing shared secrets. Undefined: the part needs no secrets. */
  readonly secret?: string
  readonly provide: (host: RedisHost, redis: RedisConnection) => void
}

const definePart = ({ description, provides, needs = [], commands, secret, provide }: Part) =>
  definePlugin<RedisPartOptions, RedisPartOptions, RedisSections>({
    sections: REDIS_SECTIONS,
    options: { ...CONNECTION_OPTIONS, description },
    provides,
    needs,
    setup(host, options) {
      if (secret !== undefined) requireSecrets(host, secret)
      const redis = redisConnection(host, options, commands)
      if (secret !== undefined) redis.claim(claimOf(host))
      provide(host, redis)
    },
    examine: (options, about) => examineRedis(options, about as InternalExamination),
  })

export const changeBusRedis = definePart({
  description: 'Sends changes and messages to other nodes over Redis.',
  provides: ['peers', 'changeBus'],
  commands: BUS_COMMANDS,
  provide(host, redis) {
    const bus = busOf(host, redis)
    host.provide('changeBus', createChangeBus(bus))
    host.provide('peers', createPeers(bus))
  },
})

export const sessionStoreRedis = definePart({
  description: 'Stores sessions in Redis: any node serves any session. Requires change-bus-redis.',
  provides: ['sessionStore'],
  needs: ['peers'],
  commands: STORE_COMMANDS,
  secret: OF_SESSIONS,
  provide(host, redis) {
    host.provide('sessionStore', createSessionStore(redisStore(redis), { node: host.config.node, log: host.log }))
  },
})

export const grantStoreRedis = definePart({
  description: 'Stores logins and grants of the authorization server in Redis, for all nodes.',
  provides: ['grantStore'],
  commands: STORE_COMMANDS,
  secret: 'grants are for every node, but the keys that seal them',
  provide: (host, redis) => host.provide('grantStore', createGrantStore(redisStore(redis))),
})

export const taskStoreRedis = definePart({
  description: 'Stores tasks in Redis. Any node can run them.',
  provides: ['taskStore'],
  commands: ALL_COMMANDS,
  secret: 'tasks are shared by nodes, but the keys for their owners',
  provide(host, redis) {
    const { log, clock } = host
    host.provide('taskStore', createTaskStore(redisStore(redis), { log, clock, bus: busOf(host, redis) }))
  },
})
