// Keeps sessions, the events of streams, grants, and tasks in one file: they outlive a restart, and all processes of this machine
// share them. docs/plugins/store-sqlite.md.

import { definePlugin } from '../../core/index.ts'
import { type FilledStoreSqliteOptions, OPTIONS, type StoreSqliteOptions } from './options.ts'

export type { StoreSqliteOptions } from './options.ts'

export const storeSqlite = definePlugin<StoreSqliteOptions, FilledStoreSqliteOptions>({
  options: OPTIONS,
  provides: ['sessionStore', 'eventStore', 'grantStore', 'taskStore'],
  async setup(host, options) {
    // One client, whose sessions and streams end with the process; several of them may run on one config.
    if (host.purpose === 'stdio') return
    const { setUp } = await import('./set-up.ts')
    setUp(host, options)
  },
})
