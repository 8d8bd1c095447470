// Validators of our own schemas that were compiled when the package was built, by the key of the schema. In the source
// there are none, and ajv compiles at start: build/write-validators.ts writes this file anew in `dist`.
import type { ValidateFunction } from 'ajv/dist/2020.js'

export const BUILT_VALIDATORS: Readonly<Record<string, ValidateFunction>> = {}
