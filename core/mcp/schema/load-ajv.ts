// ajv, loaded when a schema is first to be compiled that was not built with the package: some ninety files, and a tenth of
// a start. A host whose tools bring Standard Schemas, as zod's are, needs none of them.
import { createRequire } from 'node:module'
import type * as ForDraft07 from 'ajv'
import type * as For2020 from 'ajv/dist/2020.js'
import type * as Formats from 'ajv-formats'

// Compiling is not awaited, and both are CommonJS.
const require = createRequire(import.meta.url)

export const loadAjv = (): typeof ForDraft07 => require('ajv')
export const loadAjv2020 = (): typeof For2020 => require('ajv/dist/2020.js')
export const loadFormats = (): typeof Formats.default => require('ajv-formats')
