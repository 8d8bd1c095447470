// Validates arguments and results. Schemas are compiled at their first use.
import { LRUCache } from 'lru-cache'
import type { JsonSchema } from '../../../core/index.ts'
import { compileSchema } from '../../../core/internal.ts'
import { errorText, isObject } from '../../../core/plugin.ts'

type Role = 'input' | 'output'

/** Maximum compiled schemas of a process. */
const MAX_COMPILED = 500

type Compiled = Pick<ReturnType<typeof compileSchema>, 'validate'>

const compiled = new LRUCache<JsonSchema, Compiled>({ max: MAX_COMPILED })

function compile(schema: JsonSchema, role: Role): Compiled {
  try {
    return compileSchema(withoutPatterns(schema) as JsonSchema, role)
  } catch (error) {
    return { validate: () => ({ ok: false, problems: `the schema is invalid: ${errorText(error)}` }) }
  }
}

/** Returns the problems of a value, one per line; undefined for a valid value. */
export async function problemsOf(value: unknown, schema: JsonSchema, role: Role): Promise<string | undefined> {
  const known = compiled.get(schema) ?? compile(schema, role)
  compiled.set(schema, known)
  const checked = await known.validate(value)
  return checked.ok ? undefined : checked.problems
}

/** Removes patterns, which can take exponential time: the API or server checks them. Below `properties`, keys are names. */
function withoutPatterns(value: unknown, isNames = false): unknown {
  if (Array.isArray(value)) return value.map(one => withoutPatterns(one))
  if (!isObject(value)) return value
  if (isNames) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutPatterns(one)]))
  const { pattern: _, patternProperties, ...rest } = value
  const isClosed = patternProperties !== undefined
  return Object.fromEntries(
    Object.entries(rest)
      .filter(([key]) => !(isClosed && ['additionalProperties', 'unevaluatedProperties'].includes(key)))
      .map(([key, one]) => [key, DATA.has(key) ? one : withoutPatterns(one, NAMES.has(key))]),
  )
}

const NAMES = new Set(['properties', '$defs', 'dependentSchemas'])
const DATA = new Set(['const', 'default', 'enum', 'examples'])
