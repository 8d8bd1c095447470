// The options of apps.
import { type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'

export const OPTIONS = {
  type: 'object',
  description: 'Serves the pages of tools with an `app`.',
  additionalProperties: false,
  properties: {
    maxPageSize: {
      type: ['string', 'number'],
      pattern: SIZE_PATTERN,
      minimum: 1,
      default: '1mb',
      description: 'Maximum size of a page. Startup fails for a larger page and shows its largest file.',
    },
    minify: {
      type: 'boolean',
      default: true,
      description: 'Minifies bundled pages.',
    },
  },
} as const

export interface AppsOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledAppsOptions extends OptionsOf<typeof OPTIONS, true> {}
