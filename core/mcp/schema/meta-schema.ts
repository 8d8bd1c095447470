// The dialects of JSON Schema in which authors write, and whether a schema keeps the rules of its own: its meta-schema's.
// For schema.ts.
import type { Ajv, ErrorObject, Options, ValidateFunction } from 'ajv'
import { nearest } from '../nearest.ts'
import type { JsonSchema } from '../protocol.ts'
import { BUILT_META_VALIDATORS } from './built-meta-validators.ts'
import { loadAjv, loadAjv2020 } from './load-ajv.ts'
import { stepsOf } from './read-errors.ts'

export type Dialect = 'draft 2020-12' | 'draft-07'

export const DIALECTS: Readonly<Record<Dialect, { readonly id: string; create(options: Options): Ajv }>> = {
  'draft 2020-12': {
    id: 'https://json-schema.org/draft/2020-12/schema',
    create: options => new (loadAjv2020().Ajv2020)(options),
  },
  'draft-07': { id: 'http://json-schema.org/draft-07/schema', create: options => new (loadAjv().Ajv)(options) },
}

/** How authors' schemas, and meta-schemas, are read. */
export const LENIENT: Options = { strict: false, strictNumbers: true, logger: false }

const validators = new Map<Dialect, ValidateFunction | undefined>()

/** Built with the package or, the first time that one of the dialect is asked for, compiled now. */
function validatorOf(dialect: Dialect): ValidateFunction | undefined {
  const { id, create } = DIALECTS[dialect]
  const validate = BUILT_META_VALIDATORS[dialect] ?? validators.get(dialect) ?? create(LENIENT).getSchema(id)
  validators.set(dialect, validate)
  return validate
}

/** A place in a schema that breaks the rules of its dialect. */
export interface MetaProblem {
  readonly steps: readonly (string | number)[]
  readonly text: string
}

const MAX_PLACES = 3

/** Where the schema breaks the rules of its dialect, at most three places; none: nowhere. */
export function metaSchemaProblems(schema: JsonSchema, dialect: Dialect): MetaProblem[] {
  const validate = validatorOf(dialect)
  if (validate === undefined || validate(schema)) return []
  const errors = validate.errors ?? []
  // Of one place the first error tells what would fit; the others are about the choice that it is part of.
  const pointers = [...new Set(errors.map(({ instancePath }) => instancePath))].slice(0, MAX_PLACES)
  return pointers.map(pointer => {
    const here = errors.filter(({ instancePath }) => instancePath === pointer)
    const error = here.find(({ keyword }) => keyword === 'enum') ?? here[0]
    return { steps: stepsOf(pointer, schema), text: `#${pointer} ${reasonOf(schema, pointer, error)}` }
  })
}

function reasonOf(schema: JsonSchema, pointer: string, error: ErrorObject | undefined): string {
  const found = stepsOf(pointer, schema).reduce<unknown>((value, step) => Reflect.get(Object(value), step), schema)
  const allowed: unknown = error?.params['allowedValues']
  if (!Array.isArray(allowed)) return error?.message ?? 'is not valid'
  const known = allowed.map(String)
  const near = typeof found === 'string' ? nearest(found, known) : undefined
  const hint = near === undefined ? '' : `did you mean "${near}"? `
  const is = typeof found === 'string' ? JSON.stringify(found.slice(0, MAX_FOUND)) : `of another kind (${typeof found})`
  return `is ${is}; ${hint}there are: ${known.join(', ')}`
}

/** Characters. */
const MAX_FOUND = 80
