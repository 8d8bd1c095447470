// Standard Schemas (zod, valibot, arktype): JSON Schema conversion, validation, and unsupported forms.
import { errorText } from '../../http/errors.ts'
import type { StandardResult, StandardSchema } from '../definitions/infer.ts'
import { isObject } from '../wire/message.ts'
import type { JsonSchema } from '../wire/protocol.ts'
import { SchemaError } from './check-schema.ts'
import { type Checked, explainIssues, type SchemaRole } from './explain-errors.ts'

export const LIBRARIES =
  'zod >= 4.2 and arktype >= 2.1.28 fit as they are, valibot through toStandardJsonSchema of @valibot/to-json-schema'

const HINTS: Readonly<Record<string, readonly [fix: string, object: string]>> = {
  zod: ['this is zod 3 or an early 4: npm install zod@latest, which is 4.2 or later', 'z.object({ ... })'],
  valibot: [
    'write toStandardJsonSchema(v.object({ ... })), from @valibot/to-json-schema',
    'toStandardJsonSchema(v.object({ ... })), from @valibot/to-json-schema',
  ],
  arktype: ['npm install arktype@latest, which is 2.1.28 or later', 'type({ ... })'],
  'zod 3': ['npm install zod@latest', 'z.object({ ... }) of zod 4.2 or later (npm install zod@latest)'],
}

export const isStandardSchema = (schema: unknown): schema is StandardSchema =>
  ((typeof schema === 'object' && schema !== null) || typeof schema === 'function') && '~standard' in schema

function libraryOf(value: unknown): string | undefined {
  if (isObject(value) && '_def' in value && !('_zod' in value)) return 'zod 3'
  if (!isStandardSchema(value)) return undefined
  return value['~standard'].vendor in HINTS ? value['~standard'].vendor : 'zod'
}

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array'])
const isProperty = (value: unknown) => TYPES.has(String(isObject(value) ? value['type'] : value))

export function checkForeign(schema: Readonly<Record<string, unknown>>, role: SchemaRole): void {
  if (libraryOf(schema) === 'zod 3') {
    const what = `its ${role} is a schema of zod 3, which cannot be converted to JSON Schema`
    throw new SchemaError(role, `${what}: npm install zod@latest`)
  }
  const [first] = Object.entries(schema)
  if (!first) return
  const library = libraryOf(first[1])
  const isBare = typeof schema['type'] !== 'string' && !('$ref' in schema) && Object.values(schema).every(isProperty)
  if (library === undefined && !isBare) return
  const wrapped = library && HINTS[library]?.[1]
  const fix = wrapped ?? `{ type: 'object', properties: { ${first[0]}: { type: 'string' } } }`
  const what = `its ${role} is a bare list of properties ("${first[0]}" and so on)`
  throw new SchemaError(role, `${what}; write ${role}: ${fix}`)
}

export function standardToJson(schema: StandardSchema, role: SchemaRole): JsonSchema {
  const { vendor, jsonSchema } = schema['~standard']
  const convert = jsonSchema?.[role]
  if (typeof convert !== 'function') {
    const fix = HINTS[vendor]?.[0] ?? LIBRARIES
    throw new SchemaError(role, `its ${role}, a schema of ${vendor}, cannot be converted to JSON Schema; ${fix}`)
  }
  try {
    // zod adds `~standard` to its result.
    const { '~standard': _, ...json }: JsonSchema = { ...convert.call(jsonSchema, { target: 'draft-2020-12' }) }
    return json
  } catch (cause) {
    const reason = `${vendor} cannot convert its ${role} to JSON Schema: ${errorText(cause)}`
    throw new Error(`${reason} (${LIBRARIES})`, { cause })
  }
}

export function validateStandard(schema: StandardSchema, role: SchemaRole) {
  const { '~standard': standard } = schema
  const judge = (result: StandardResult<unknown>): Checked =>
    result.issues ? { ok: false, problems: explainIssues(result.issues, role) } : { ok: true, value: result.value }
  return (value: unknown): Checked | Promise<Checked> => {
    try {
      const result = standard.validate(value)
      if (!('then' in result)) return judge(result)
      return Promise.resolve(result)
        .then(judge)
        .catch(error => tooDeep(error, role))
    } catch (error) {
      return tooDeep(error, role)
    }
  }
}

export function tooDeep(error: unknown, role: SchemaRole): Checked {
  if (!(error instanceof RangeError)) throw error
  return { ok: false, problems: explainIssues([{ message: 'is nested too deeply' }], role) }
}
