// Keys in many slots of a Redis Cluster, which are counted up together.
import type { RedisConnection } from '../../../plugins/families/redis/index.ts'

/** How many there are. */
export const KEYS = 200

/** Counts up one key in each of many slots, so that every master has some. Gives what was answered. */
export async function countAll(connection: RedisConnection) {
  const counted = await Promise.allSettled(
    Array.from({ length: KEYS }, (_, index) => connection.run(client => client.incr(connection.key(`n${index}`)))),
  )
  return counted.flatMap(outcome => (outcome.status === 'fulfilled' ? [Number(outcome.value)] : []))
}
