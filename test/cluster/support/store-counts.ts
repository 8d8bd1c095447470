// Counts the content of the store of several nodes, in Redis or in a file.

import type { Members, Store } from '../../../core/store/store.ts'
import { openDatabase } from '../../sqlite/support/sqlite.ts'
import { queryPostgres } from '../../support/postgres-server.ts'
import type { RedisServer } from '../../support/redis-server.ts'

export interface Counts {
  /** Sessions that idle, as the store was told. */
  idle(): number
  sessions(): number
}

export const countsInRedis = ({ cli }: RedisServer): Counts => ({
  idle: () => Number(cli('ZCARD', 'mcp-host:{sessions}:s:idle')[0]),
  sessions: () => cli('KEYS', '*:session').length,
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
  const count = (sql: string) => Number(queryPostgres(url, `SELECT coalesce((${sql}), 0)`))
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
