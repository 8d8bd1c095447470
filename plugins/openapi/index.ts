// The plugin `openapi`: serves operations of HTTP APIs with an OpenAPI document as tools.
import { definePlugin } from '../../core/internal.ts'
import { type FilledOptions, OPTIONS, type OpenApiOptions } from './options.ts'

export type { OpenApiOptions } from './options.ts'

export const openapi = definePlugin<OpenApiOptions, FilledOptions>({
  options: OPTIONS,
  async setup() {
    // The set-up follows with the reading of documents.
  },
})
