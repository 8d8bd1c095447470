// Schemas in the forms that other frameworks take: recognised by their shape, and told the form that is right here.
// For schema.ts.
import { isObject } from '../is-object.ts'
import type { SchemaRole } from './explain-errors.ts'

/** The library of one property of a raw shape, such as zod's `{ name: z.string() }`. */
function libraryOf(value: unknown): 'zod 3' | 'zod' | 'valibot' | 'arktype' | undefined {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  if ('_def' in value && !('_zod' in value)) return 'zod 3'
  if (!('~standard' in value)) return undefined
  const vendor = Reflect.get(Object(value['~standard']), 'vendor')
  return vendor === 'valibot' || vendor === 'arktype' ? vendor : 'zod'
}

const WRAPPED: Readonly<Record<'zod 3' | 'zod' | 'valibot' | 'arktype', string>> = {
  'zod 3': 'z.object({ ... }) of zod 4.2 or later (npm install zod@latest)',
  zod: 'z.object({ ... })',
  valibot: 'toStandardJsonSchema(v.object({ ... })), from @valibot/to-json-schema',
  arktype: 'type({ ... })',
}

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array'])

/** Throws a text for the author of what is a schema elsewhere, and none here. */
export function checkForeign(schema: Readonly<Record<string, unknown>>, role: SchemaRole): void {
  if (libraryOf(schema) === 'zod 3') {
    throw new Error(`its ${role} is a schema of zod 3, which cannot give its JSON Schema: npm install zod@latest`)
  }
  const [first] = Object.entries(schema)
  const library = first && libraryOf(first[1])
  if (first && library !== undefined) {
    throw new Error(
      `its ${role} is a bare list of properties ("${first[0]}" and so on); write ${role}: ${WRAPPED[library]}`,
    )
  }
  // `{ name: { type: 'string' } }`, or `{ name: 'string' }`.
  const entries = Object.entries(schema)
  const isProperty = (value: unknown) => (isObject(value) ? TYPES.has(String(value['type'])) : TYPES.has(String(value)))
  const isBare = entries.length > 0 && !('type' in schema && typeof schema['type'] === 'string') && !('$ref' in schema)
  if (isBare && entries.every(([, value]) => isProperty(value))) {
    const fix = `${role}: { type: 'object', properties: { ${first?.[0]}: { type: 'string' } } }`
    throw new Error(`its ${role} is a bare list of properties ("${first?.[0]}" and so on); write ${fix}`)
  }
}
