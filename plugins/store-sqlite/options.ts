// The options of store-sqlite.
import { type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'
import { STREAM_PROPERTIES } from '../families/stores/index.ts'

export const OPTIONS = {
  type: 'object',
  description: 'Stores sessions, streams, logins and tasks in one file, for restarts and for --workers.',
  additionalProperties: false,
  properties: {
    file: {
      type: 'string',
      default: './mcp-host.db',
      description: 'Path, relative to the config. A missing folder is created with mode 0700 and a .gitignore.',
    },
    ...STREAM_PROPERTIES,
    maxSize: {
      type: ['string', 'number'],
      pattern: SIZE_PATTERN,
      minimum: 1_048_576,
      default: '1gb',
      description: 'Maximum size of the file. Above 80 %, the least recently written streams are removed.',
    },
    ifDamaged: {
      type: 'string',
      enum: ['stop', 'replace'],
      default: 'stop',
      description: 'For a damaged file: `stop` startup, or `replace` it and rename the damaged file.',
    },
  },
} as const

/** File location, maximum size, and stream limits. */
export interface StoreSqliteOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledStoreSqliteOptions extends OptionsOf<typeof OPTIONS, true> {}
