// The options of store-postgres.
import { closed, words } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { STREAM_PROPERTIES } from '../families/stores/index.ts'

export const OPTIONS = closed(
  {
    url: words('URL of the database: postgres://user:password@host:5432/database?sslmode=verify-full.', {
      pattern: '^postgres(?:ql)?://',
      patternErrorMessage: "a URL such as 'postgres://user:password@db.example.com:5432/mcp?sslmode=verify-full'",
      writeOnly: true,
    }),
    schema: words(
      'Schema of the tables, created if missing. Deployments that share a database need different schemas.',
      { pattern: '^[a-z_][a-z0-9_]{0,50}$', default: 'mcp_host' },
    ),
    ...STREAM_PROPERTIES,
  },
  {
    description: 'Stores sessions, streams, logins and tasks in PostgreSQL. Any node serves any session.',
    required: ['url'],
  },
)

/** Database, schema and stream limits. */
export interface StorePostgresOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledStorePostgresOptions extends OptionsOf<typeof OPTIONS, true> {}
