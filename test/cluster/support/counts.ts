// What the store of several nodes has, looked at from outside: in Redis, or in a file.

import type { Members, Store } from '../../../core/store/store.ts'
import { openDatabase } from '../../sqlite/support/sqlite.ts'
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
  const count = (where: string) => {
    const database = openDatabase(file)
    try {
      return Number(database.prepare(`SELECT count(*) AS found FROM sessions WHERE ${where}`).all()[0]?.['found'])
    } finally {
      database.close()
    }
  }
  return { idle: () => count('idle_since IS NOT NULL'), sessions: () => count('TRUE') }
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
