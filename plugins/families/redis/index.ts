// What the plugins that keep things in Redis share, and no plugin itself: the config's `redis`, one connection a host,
// scripts, and which failures pass. Its members are named in test/architecture.test.ts; they import this file alone.
export { redisConnection } from './connection.ts'
export { isMomentary, RedisTimeout, unavailable, within } from './failures.ts'
export { claimOf } from './key-space.ts'
export { type RedisScript, redisScript } from './script.ts'
export {
  REDIS_PROPERTIES,
  REDIS_SECTIONS,
  type RedisHost,
  type RedisSections,
  type RedisSettings,
} from './section.ts'
export type { RedisConnection, RedisReader } from './shared-connection.ts'
export { evaluateInTime } from './shared-connection.ts'
