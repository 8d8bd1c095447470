// Validates values against schemas of this package and of plugins, and explains the problems.

import { createHash } from 'node:crypto'
import type { Ajv2020, KeywordCxt, ValidateFunction } from 'ajv/dist/2020.js'
import { LRUCache } from 'lru-cache'
import { errorText, type Path, StartError } from '../http/errors.ts'
import { getOrCreate } from '../http/get-or-create.ts'
import { loadAjv2020, loadFormats } from '../mcp/schema/ajv.ts'
import { BUILT_VALIDATORS } from './built-validators.ts'
import { explainProblems, type Finding } from './explain-problems.ts'
import { trimSecrets } from './walk-schema.ts'

let ajv: Ajv2020 | undefined
const compiled = new WeakMap<object, ValidateFunction>()
/** Validators by schema content, because every start and reload builds the config schema again. */
const compiledByKey = new LRUCache<string, ValidateFunction>({ max: 100 })

function compile(schema: object): ValidateFunction {
  const key = schemaKey(schema)
  const known = BUILT_VALIDATORS[key] ?? compiledByKey.get(key)
  if (known) return known
  ajv ??= createAjv()
  try {
    const validate = ajv.compile(schema)
    compiledByKey.set(key, validate)
    return validate
  } finally {
    // Without this, Ajv keeps the schema and rejects the next one with the same `$id`.
    ajv.removeSchema(schema)
  }
}

function validatorOf(schema: object, at: Path, what: string): ValidateFunction {
  try {
    return getOrCreate(compiled, schema, compile)
  } catch (cause) {
    throw new StartError('MH1025', `${what} is not valid: ${errorText(cause)}`, {
      cause,
      at,
      exitCode: 1,
    })
  }
}

/** Returns the problems of a value at `at`. Throws a StartError for an invalid schema. */
export function validateValue(
  value: unknown,
  schema: object,
  at: Path,
  what = "the plugin's options schema",
): Finding[] {
  const validate = validatorOf(schema, at, what)
  const taken = trimSecrets(value, schema)
  return validate(taken) ? [] : explainProblems(validate.errors ?? [], { value: taken, schema, at })
}

/**
 * Formats of our own schemas. Built validators contain these functions as source text, so they must not use other names of this
 * file.
 */
export const OWN_FORMATS = { uri: (text: string): boolean => URL.canParse(text) }

// Skips the meta-schema, whose compilation would take a large part of the startup time.
const OPTIONS = { allErrors: true, verbose: true, strict: false, validateSchema: false }

const CALLABLE = {
  keyword: 'callable',
  code: (cxt: KeywordCxt) => cxt.fail(loadAjv2020()._`typeof ${cxt.data} != "function"`),
}

/** Compiles at run time. A plugin's schema can use every format of ajv-formats. */
export function createAjv(): Ajv2020 {
  const { Ajv2020 } = loadAjv2020()
  const ajv = new Ajv2020({ ...OPTIONS, code: { optimize: false } })
  loadFormats().default(ajv)
  return ajv.addFormat('uri', OWN_FORMATS.uri).addKeyword(CALLABLE)
}

export function createWritingAjv(): Ajv2020 {
  const { _, Ajv2020 } = loadAjv2020()
  const ajv = new Ajv2020({ ...OPTIONS, code: { source: true, esm: true, formats: _`OWN_FORMATS` } })
  return ajv.addFormat('uri', OWN_FORMATS.uri).addKeyword(CALLABLE)
}

export const schemaKey = (schema: object): string =>
  createHash('sha256').update(JSON.stringify(schema)).digest('base64url')
