// The plugin `store-postgres`: the store and the bus of all nodes in PostgreSQL.
import type { OptionsOf } from '../../core/plugin.ts'

export const POSTGRES_OPTIONS = {
  type: 'object',
  description: 'Stores sessions, streams, logins and tasks in PostgreSQL, and connects the nodes.',
  additionalProperties: false,
  required: ['url'],
  properties: {
    url: {
      type: 'string',
      pattern: '^postgres(?:ql)?://',
      patternErrorMessage: "a URL such as 'postgres://user:password@db.example.com:5432/mcp?sslmode=verify-full'",
      writeOnly: true,
      description: 'URL of the database: postgres://user:password@host:5432/database.',
    },
    schema: {
      type: 'string',
      pattern: '^[a-z_][a-z0-9_]{0,50}$',
      default: 'mcp_host',
      description: 'Schema of the tables, created if missing. Hosts that share only the database use one each.',
    },
  },
} as const

/** Database and schema. */
export interface StorePostgresOptions extends OptionsOf<typeof POSTGRES_OPTIONS> {}
export interface FilledStorePostgresOptions extends OptionsOf<typeof POSTGRES_OPTIONS, true> {}
