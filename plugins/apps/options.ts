// The options of apps.
import { type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'

export const OPTIONS = {
  type: 'object',
  description: 'Serves the pages of tools that have an `app`, which clients show to people.',
  additionalProperties: false,
  properties: {
    maxPageSize: {
      type: ['string', 'number'],
      pattern: SIZE_PATTERN,
      minimum: 1,
      default: '1mb',
      description: 'How large the page of an app may be.',
    },
    minify: {
      type: 'boolean',
      default: true,
      description: 'Makes bundled pages small; without it they can be read.',
    },
  },
} as const

export interface AppsOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledAppsOptions extends OptionsOf<typeof OPTIONS, true> {}
