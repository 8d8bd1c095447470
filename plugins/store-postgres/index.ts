// The plugin `store-postgres`: stores sessions, streams, grants and tasks in PostgreSQL, and connects the nodes.
import { assertInstalled } from '../../core/auth.ts'
import { definePlugin } from '../../core/internal.ts'
import { type FilledStorePostgresOptions, OPTIONS, type StorePostgresOptions } from './options.ts'

export type { StorePostgresOptions } from './options.ts'

export const storePostgres = definePlugin<StorePostgresOptions, FilledStorePostgresOptions>({
  options: OPTIONS,
  storeKey: 'postgres',
  provides: ['store'],
  async setup(host, options) {
    assertInstalled(['pg'], host.config)
    const { setUp } = await import('./set-up.ts')
    setUp(host, options)
  },
  async examine({ url, schema }, { log }) {
    const { Postgres } = await import('./connection.ts')
    return [await new Postgres({ url, schema, log }).examine()]
  },
})
