// Counts the content of the store of several nodes, in Redis or in a file.

import pg from 'pg'
import type { Members, Store } from '../../../core/store/store.ts'
import { openDatabase } from '../../sqlite/support/sqlite.ts'
import { sendToRedis } from '../../support/redis-command.ts'
import type { RedisServer } from '../../support/redis-server.ts'

export interface Counts {
  /** Sessions that idle, as the store was told. */
  idle(): number | Promise<number>
  sessions(): number | Promise<number>
}

export const countsInRedis = (redis: RedisServer): Counts => ({
  idle: async () => Number((await sendToRedis(redis, 'ZCARD', 'mcp-host:{sessions}:s:idle'))[0]),
  sessions: async () => (await sendToRedis(redis, 'KEYS', '*:session')).length,
})

export function countsInFile(file: string): Counts {
  const count = (sql: string) => {
    const database = openDatabase(file)
    try {
      return Number(database.prepare(`SELECT ${sql} AS found`).all()[0]?.['found'] ?? 0)
    } finally {
      database.close()
    }
  }
  return {
    idle: () => count("(SELECT size FROM sorted_sets WHERE partition = 'sessions' AND name = 'idle')"),
    sessions: () => count("(SELECT count(*) FROM records WHERE name = 'session')"),
  }
}

export function countsInPostgres({ url, schema }: { readonly url: string; readonly schema: string }): Counts {
  const count = async (sql: string) => {
    const client = new pg.Client(url)
    await client.connect()
    const { rows } = await client.query<{ readonly count: string }>(`SELECT coalesce((${sql}), 0) AS count`)
    await client.end()
    return Number(rows[0]?.count)
  }
  return {
    idle: () =>
      count(`SELECT size FROM ${schema}.entries WHERE partition = 'sessions' AND kind = 'set' AND name = 'idle'`),
    sessions: () => count(`SELECT count(*) FROM ${schema}.entries WHERE kind = 'record' AND name = 'session'`),
  }
}

/** Of a store that answers at once. */
export const countsInStore = (store: Store & { readonly partitions: ReadonlySet<string> }): Counts => ({
  idle: () => (store.read('sessions', [{ sortedSet: 'idle', limit: 0 }]) as readonly [Members])[0].size,
  sessions: () =>
    [...store.partitions].filter(partition => {
      const [session] = store.read(partition, [{ record: 'session' }]) as readonly unknown[]
      return session !== undefined
    }).length,
})
