// One Redis connection per host, for all plugins that use Redis.
export { redisConnection } from './connection.ts'
export { isMomentary, RedisTimeout, unavailable, within } from './failures.ts'
export { claimOf } from './key-space.ts'
export {
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisHost,
  type RedisSections,
  type RedisSettings,
} from './schema.ts'
export { entriesOf, fieldsOf, type RedisScript, redisScript, type StreamEntry } from './script.ts'
export type { RedisConnection, RedisReader } from './shared-connection.ts'
export { evaluateInTime } from './shared-connection.ts'
