// The options of apps.
import { closed, flag, size } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'

export const OPTIONS = closed(
  {
    maxPageSize: size('Maximum size of a page. Startup fails for a larger page and shows its largest file.', {
      minimum: 1,
      default: '1mb',
    }),
    minify: flag('Minifies bundled pages.', { default: true }),
  },
  { description: 'Serves the pages of tools with an `app`.' },
)

export interface AppsOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledAppsOptions extends OptionsOf<typeof OPTIONS, true> {}
