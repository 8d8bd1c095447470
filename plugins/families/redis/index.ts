// One Redis connection per host, for all plugins that use Redis.

export { BUS_COMMANDS, busFor as busOf, redisBus } from './bus.ts'
export { redisScript } from './commands.ts'
export { examineRedis, type RedisConnection, redisConnection } from './connection.ts'
export {
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisHost,
  type RedisSections,
  type RedisSettings,
} from './schema.ts'
export { redisStore } from './store.ts'
export { STORE_COMMANDS } from './store-scripts.ts'
