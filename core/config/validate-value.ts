// Validates values against our schemas and those of plugins, and explains what does not fit. build/write-validators.ts compiles
// the same schemas when the package is built.

import { createHash } from 'node:crypto'
import type { Ajv2020, KeywordCxt, ValidateFunction } from 'ajv/dist/2020.js'
import { errorText, type Path, StartError } from '../http/errors.ts'
import { loadAjv2020, loadFormats } from '../mcp/schema/ajv.ts'
import { BUILT_VALIDATORS } from './built-validators.ts'
import { explainProblems, type Finding } from './explain-problems.ts'
import { trimSecrets } from './walk-schema.ts'

let ajv: Ajv2020 | undefined
const compiled = new WeakMap<object, ValidateFunction>()

/** Built with the package or, for other plugins' schemas and from source, compiled now. */
function compile(schema: object): ValidateFunction {
  const built = BUILT_VALIDATORS[schemaKey(schema)]
  if (built) return built
  ajv ??= createAjv()
  return ajv.compile(schema)
}

function validatorOf(schema: object, at: Path): ValidateFunction {
  try {
    const validate = compiled.get(schema) ?? compile(schema)
    compiled.set(schema, validate)
    return validate
  } catch (cause) {
    throw new StartError(`the plugin's options schema is not valid: ${errorText(cause)}`, { cause, at, exitCode: 1 })
  }
}

/** What is wrong with a value that stands at `at`. Throws a StartError where the schema is none. */
export function validateValue(value: unknown, schema: object, at: Path): Finding[] {
  const validate = validatorOf(schema, at)
  // As the host will take it.
  const taken = trimSecrets(value, schema)
  return validate(taken) ? [] : explainProblems(validate.errors ?? [], { value: taken, schema, at })
}

/** What our own schemas ask of a text. Built validators have these functions as they are written: they use nothing of this file. */
export const OWN_FORMATS = { uri: (text: string): boolean => URL.canParse(text) }

// Our own schemas need no meta-schema, whose compiling would be a good part of a start.
const OPTIONS = { allErrors: true, verbose: true, strict: false, validateSchema: false }

const CALLABLE = {
  keyword: 'callable',
  code: (cxt: KeywordCxt) => cxt.fail(loadAjv2020()._`typeof ${cxt.data} != "function"`),
}

/** Compiles at start. A plugin's schema may use every format of ajv-formats. */
export function createAjv(): Ajv2020 {
  const { Ajv2020 } = loadAjv2020()
  const ajv = new Ajv2020({ ...OPTIONS, code: { optimize: false } })
  loadFormats().default(ajv)
  return ajv.addFormat('uri', OWN_FORMATS.uri).addKeyword(CALLABLE)
}

/** Compiles to the text of a module, in which `OWN_FORMATS` is to be declared. */
export function createWritingAjv(): Ajv2020 {
  const { _, Ajv2020 } = loadAjv2020()
  const ajv = new Ajv2020({ ...OPTIONS, code: { source: true, esm: true, formats: _`OWN_FORMATS` } })
  return ajv.addFormat('uri', OWN_FORMATS.uri).addKeyword(CALLABLE)
}

export const schemaKey = (schema: object): string =>
  createHash('sha256').update(JSON.stringify(schema)).digest('base64url')
