// Precompiled validators by schema key. build/write-validators.ts generates this file in `dist`; from source it is empty and ajv
// compiles.
import type { ValidateFunction } from 'ajv/dist/2020.js'

export const BUILT_VALIDATORS: Readonly<Record<string, ValidateFunction>> = {}
