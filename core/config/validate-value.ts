// Holds a value against one of our schemas, or a plugin's, and explains what does not fit.
// For check-config.ts and check-definition.ts, which know where the value stands.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { errorText, StartError } from '../kernel/errors.ts'
import { explainProblems, type Finding } from './explain-problems.ts'
import { formatPath, type Path } from './position.ts'
import { trimSecrets } from './secret-keys.ts'

// Our own schemas need no meta-schema, whose compiling would be a good part of a start.
const ajv = new Ajv2020({
  allErrors: true,
  verbose: true,
  strict: false,
  validateSchema: false,
  code: { optimize: false },
})
ajvFormats.default(ajv)
ajv.addFormat('uri', text => URL.canParse(text))
ajv.addKeyword({ keyword: 'callable', validate: (_: unknown, value: unknown) => typeof value === 'function' })

const compiled = new WeakMap<object, ValidateFunction>()

function compile(schema: object, at: Path): ValidateFunction {
  try {
    const validate = compiled.get(schema) ?? ajv.compile(schema)
    compiled.set(schema, validate)
    return validate
  } catch (cause) {
    throw new StartError(`${formatPath(at)}: the plugin's options schema is not valid: ${errorText(cause)}`, { cause })
  }
}

/** What is wrong with a value that stands at `at`. Throws a StartError where the schema is none. */
export function validateValue(value: unknown, schema: object, at: Path): Finding[] {
  const validate = compile(schema, at)
  // As the host will take it.
  const taken = trimSecrets(value, schema)
  return validate(taken) ? [] : explainProblems(validate.errors ?? [], { value: taken, schema, at })
}
