// Precompiled meta-schema validators. Empty in the source; build/write-validators.ts fills it in `dist`.
import type { ValidateFunction } from 'ajv'

export const BUILT_META_VALIDATORS: Readonly<Record<string, ValidateFunction>> = {}
