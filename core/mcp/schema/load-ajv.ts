// ajv, loaded when a schema is first to be compiled that was not built with the package: some ninety files, and a tenth of
// a start. A host whose tools bring Standard Schemas, as zod's are, needs none of them. One that listens loads it ahead of
// its first call, which would wait for 25 ms, and find no ajv where a deployment has taken the files away meanwhile.
import { createRequire } from 'node:module'
import type * as ForDraft07 from 'ajv'
import type * as For2020 from 'ajv/dist/2020.js'
import type * as Formats from 'ajv-formats'

// Compiling is not awaited, and both are CommonJS.
const require = createRequire(import.meta.url)

export const loadAjv = (): typeof ForDraft07 => require('ajv')
export const loadAjv2020 = (): typeof For2020 => require('ajv/dist/2020.js')
// By its file: where its folder is away for a moment, Node remembers that its package.json was, and finds no `main` again.
export const loadFormats = (): typeof Formats.default => require('ajv-formats/dist/index.js')

/** All that compiling takes. Throws what Node throws, and may succeed the next time. */
export function loadCompiler(): void {
  loadAjv()
  loadAjv2020()
  loadFormats()
}

/** Whether a schema of this process is to be compiled when it is first used. */
let isNeeded = false

export const needCompiler = (): void => {
  isNeeded = true
}

/** Loads the compiler where a schema will need it. */
export const loadNeededCompiler = (): void => {
  if (isNeeded) loadCompiler()
}
