// Validators of the params of the host's own methods that were compiled when the package was built, for params.ts. In the
// source there are none, and ajv compiles when a method is first called: build/write-validators.ts writes this file anew in
// `dist`.
import type { ValidateFunction } from 'ajv/dist/2020.js'

/** By their names in `PARAM_SCHEMAS`. */
export const BUILT_PARAM_VALIDATORS: Readonly<Record<string, ValidateFunction>> = {}
