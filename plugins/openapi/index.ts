// The plugin `openapi`: serves operations of HTTP APIs with an OpenAPI document as tools.
import { definePlugin, type InternalExamination } from '../../core/internal.ts'
import { type FilledOptions, OPTIONS, type OpenApiOptions } from './options.ts'

export type { OpenApiOptions } from './options.ts'

export const openapi = definePlugin<OpenApiOptions, FilledOptions>({
  options: OPTIONS,
  provides: ['toolsets'],
  async setup(host, options) {
    const { setUpOpenApi } = await import('./set-up.ts')
    await setUpOpenApi(host, options)
  },
  async examine(options, about) {
    const { examineDocuments } = await import('./examine.ts')
    return examineDocuments(options, about as InternalExamination)
  },
})
