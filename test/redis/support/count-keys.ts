// Sums keys in many slots of a Redis Cluster.
import type { RedisConnection } from '../../../plugins/families/redis/index.ts'
import { eventually } from '../../support/eventually.ts'

/** How many there are. */
export const KEYS = 200

/** Counts up one key in each of many slots, so that every master has some. Gives what was answered. */
export async function countAll(connection: RedisConnection) {
  const counted = await Promise.allSettled(
    Array.from({ length: KEYS }, (_, index) => connection.run(client => client.incr(connection.key(`n${index}`)))),
  )
  return counted.flatMap(outcome => (outcome.status === 'fulfilled' ? [Number(outcome.value)] : []))
}

/** The same, once every key is counted. */
export const countEvery = (connection: RedisConnection) =>
  eventually(
    'every key counted',
    () => countAll(connection),
    ({ length }) => length === KEYS,
  )
