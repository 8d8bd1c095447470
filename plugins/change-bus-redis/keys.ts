// The keys of the bus: all in one slot of a cluster, so that one command reads what all nodes and one node are told.
import type { RedisConnection } from '../families/redis/index.ts'

const TAG = '{bus}'

export const changesKey = (redis: RedisConnection) => redis.key(TAG, 'changes')
/** How many changes there have been. */
export const countKey = (redis: RedisConnection) => redis.key(TAG, 'count')
export const inboxKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'inbox', node)
/** There while the node is. */
export const nodeKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'node', node)
/** There for a while after the node went by itself. */
export const leftKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'left', node)
export const tokenKey = (redis: RedisConnection, token: string) => redis.key(TAG, 'token', token)
