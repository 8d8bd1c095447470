// Keeps the records of sessions in Redis, so that any node serves any session. docs/plugins/session-store-redis.md.
import { createHash } from 'node:crypto'
import { type BuiltInOptions, definePlugin, type PluginHost, StartError } from '../../core/index.ts'
import { REDIS_PROPERTIES, REDIS_SECTIONS, type RedisSections, redisConnection } from '../families/redis/index.ts'
import { createRedisSessionStore } from './store.ts'

/** Where Redis is, unless the config's `redis` says it. */
export type SessionStoreRedisOptions = BuiltInOptions['session-store-redis']

/** Other nodes must be able to read the ids that this one signs. */
function demandSecrets({ at, ownKeys, report }: PluginHost) {
  if (!ownKeys) return
  const why =
    'sessions are for every node, but the keys that sign their ids were made by this one; make a ' +
    "secret with `openssl rand -base64 32` and put it into the environment of every node as MCP_HOST_SECRETS, or into the config's `secrets`"
  report(new StartError(why, { at }))
}

/** What is sent beside EVAL, in scripts too. */
export const SESSION_STORE_COMMANDS = [
  ...(['del', 'exists', 'hdel', 'hexists', 'hget', 'hgetall', 'hincrby', 'hmget', 'hset', 'hsetnx'] as const),
  ...(['pexpire', 'pttl', 'set', 'time', 'zadd', 'zcard', 'zincrby', 'zrange', 'zrangebyscore', 'zrem'] as const),
  ...(['zremrangebyscore', 'zrevrange', 'zscore'] as const),
] as const

/** Tells secrets apart, and tells nothing of them: the key is derived for this alone. */
const fingerprint = (key: Buffer) => createHash('sha256').update(key).digest('base64url').slice(0, 16)

export const sessionStoreRedis = definePlugin<SessionStoreRedisOptions, SessionStoreRedisOptions, RedisSections>({
  sections: REDIS_SECTIONS,
  options: {
    type: 'object',
    description: 'Keeps the records of sessions in Redis: any node serves any session. Needs change-bus-redis.',
    additionalProperties: false,
    properties: { ...REDIS_PROPERTIES },
  },
  needs: ['peers'],
  provides: ['sessionStore'],
  setup(host, options) {
    demandSecrets(host)
    const redis = redisConnection(host, options, SESSION_STORE_COMMANDS)
    redis.claim({ node: host.node, fingerprints: host.keys('key-space').map(fingerprint) })
    host.fill('sessionStore', createRedisSessionStore(redis, host))
  },
})
