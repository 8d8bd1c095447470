// The dialects of JSON Schema in which authors write, and whether a schema keeps the rules of its own: its meta-schema's.
// For schema.ts.
import type { Ajv, Options, ValidateFunction } from 'ajv'
import type { JsonSchema } from '../protocol.ts'
import { BUILT_META_VALIDATORS } from './built-meta-validators.ts'
import { loadAjv, loadAjv2020 } from './load-ajv.ts'

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

/** Where the schema breaks the rules of its dialect, at most three places; undefined: nowhere. */
export function metaSchemaProblem(schema: JsonSchema, dialect: Dialect): string | undefined {
  const validate = validatorOf(dialect)
  if (validate === undefined || validate(schema)) return undefined
  return DIALECTS[dialect]
    .create({ meta: false })
    .errorsText(validate.errors?.slice(0, 3), { dataVar: '#', separator: '; ' })
}
