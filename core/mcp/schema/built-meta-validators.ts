// Validators of meta-schemas that were compiled when the package was built, for meta-schema.ts. In the source there are
// none, and ajv compiles at start: build/write-validators.ts writes this file anew in `dist`.
import type { ValidateFunction } from 'ajv'

/** By dialect. */
export const BUILT_META_VALIDATORS: Readonly<Record<string, ValidateFunction>> = {}
