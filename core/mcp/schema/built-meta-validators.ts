// Precompiled validators of meta-schemas. Empty in the source; build/write-validators.ts writes this file in `dist`.
import type { ValidateFunction } from 'ajv'

/** By dialect. */
export const BUILT_META_VALIDATORS: Readonly<Record<string, ValidateFunction>> = {}
