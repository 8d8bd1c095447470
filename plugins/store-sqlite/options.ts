// The options of store-sqlite.
import { choice, closed, size, words } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { STREAM_PROPERTIES } from '../families/stores/index.ts'

export const OPTIONS = closed(
  {
    file: words('Path, relative to the config. A missing folder is created with mode 0700 and a .gitignore.', {
      default: './mcp-host.db',
    }),
    ...STREAM_PROPERTIES,
    maxSize: size('Maximum size of the file. Above 80 %, the least recently written streams are removed.', {
      minimum: 1_048_576,
      default: '1gb',
    }),
    ifDamaged: choice(
      ['stop', 'replace'],
      'For a damaged file: `stop` startup, or `replace` it and rename the damaged file.',
      { default: 'stop' },
    ),
  },
  { description: 'Stores sessions, streams, logins and tasks in one file, for restarts and for --workers.' },
)

/** File location, maximum size, and stream limits. */
export interface StoreSqliteOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledStoreSqliteOptions extends OptionsOf<typeof OPTIONS, true> {}
