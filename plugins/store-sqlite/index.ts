// The plugin `store-sqlite`: stores sessions, streams, grants and tasks in one file per machine.
import { definePlugin } from '../../core/internal.ts'
import { type FilledStoreSqliteOptions, OPTIONS, type StoreSqliteOptions } from './options.ts'

export type { StoreSqliteOptions } from './options.ts'

export const storeSqlite = definePlugin<StoreSqliteOptions, FilledStoreSqliteOptions>({
  options: OPTIONS,
  storeKey: 'sqlite',
  provides: ['sessionStore', 'eventStore', 'grantStore', 'taskStore'],
  async setup(host, options) {
    // In stdio mode, sessions end with the process.
    if (host.config.purpose === 'stdio') return
    const { setUp } = await import('./set-up.ts')
    setUp(host, options)
  },
})
