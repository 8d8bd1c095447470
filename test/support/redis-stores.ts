// What sessions use in Redis, without the plugins.
import type { InternalHost } from '../../core/internal.ts'
import { createEventStore, createSessionStore, type StreamLimits } from '../../core/transport.ts'
import { type RedisConnection, redisStore } from '../../plugins/families/redis/index.ts'

export const createRedisEventStore = (connection: RedisConnection, bounds: StreamLimits) =>
  createEventStore(redisStore(connection), bounds)

export const createRedisSessionStore = (
  connection: RedisConnection,
  { config: { node }, log }: Pick<InternalHost, 'log'> & { readonly config: { readonly node: string } },
) => createSessionStore(redisStore(connection), { node, log })
