// Holds a value against one of our schemas, or a plugin's, and explains what does not fit.
// For check-config.ts and check-definition.ts, which know where the value stands.
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js'
import { errorText, type Path, StartError } from '../http/errors.ts'
import { BUILT_VALIDATORS } from './built-validators.ts'
import { explainProblems, type Finding } from './explain-problems.ts'
import { createAjv } from './own-ajv.ts'
import { schemaKey } from './schema-key.ts'
import { trimSecrets } from './secret-keys.ts'

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
