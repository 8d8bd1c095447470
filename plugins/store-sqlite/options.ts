// The options of store-sqlite.
import { type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'
import { STREAM_PROPERTIES } from '../families/stores/index.ts'

export const OPTIONS = {
  type: 'object',
  description:
    'Keeps sessions, streams, logins and tasks in one file: they outlive a restart, and --workers share them.',
  additionalProperties: false,
  properties: {
    file: {
      type: 'string',
      default: './mcp-host.db',
      description: 'The file, beside the config; its folder is made where it is missing.',
    },
    ...STREAM_PROPERTIES,
    maxSize: {
      type: ['string', 'number'],
      pattern: SIZE_PATTERN,
      minimum: 1_048_576,
      default: '1gb',
      description: 'Bytes of the file; past 80 % of it the streams that were written to longest ago go.',
    },
    ifDamaged: {
      type: 'string',
      enum: ['stop', 'replace'],
      default: 'stop',
      description: 'A damaged file stops the start, or is put aside and an empty one begun.',
    },
  },
} as const

/** File location, maximum size, and stream limits. */
export interface StoreSqliteOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledStoreSqliteOptions extends OptionsOf<typeof OPTIONS, true> {}
