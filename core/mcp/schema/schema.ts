// Compiles the `input` and `output` of tools: plain JSON Schema with ajv, Standard Schemas with their library.
import type { ErrorObject, Options, ValidateFunction } from 'ajv'
import { errorText } from '../../http/errors.ts'
import type { StandardSchema } from '../definitions/infer.ts'
import { toJson } from '../encode-bytes.ts'
import { isObject } from '../wire/message.ts'
import type { JsonSchema } from '../wire/protocol.ts'
import {
  allowReferences,
  createLinearAjv,
  type Dialect,
  forgetKeys,
  isDraft07,
  loadCompiler,
  needCompiler,
  TooMuchWork,
} from './ajv.ts'
import { checkSchema, checkType, dialectOf, SchemaError, surelyCompiles } from './check-schema.ts'
import { type Checked, explainErrors, explainIssues, type SchemaRole } from './explain-errors.ts'
import {
  checkForeign,
  isStandardSchema,
  LIBRARIES,
  standardToJson,
  tooDeep,
  validateStandard,
} from './standard-schema.ts'
import { copyForAjv, isReference, subschemas } from './subschemas.ts'

export interface CompiledSchema {
  readonly json: JsonSchema
  /** Never throws for a value. Synchronous for plain JSON Schemas, which do not change it. */
  validate(value: unknown): Checked | Promise<Checked>
}

const UNCHECKED = Symbol.for('mcp-host.unchecked-schema')

/**
 * Marks the JSON Schema of a tool that another server validates: lists show it unchanged, and it is not compiled. Arguments and
 * results are not checked against it.
 */
export function uncheckedSchema(schema: JsonSchema): JsonSchema {
  return Object.defineProperty(schema, UNCHECKED, { value: true })
}

export const isUnchecked = (schema: unknown): schema is JsonSchema => isObject(schema) && UNCHECKED in schema

/** Throws for a schema that is invalid, too large, of another dialect, or references another document. */
export function compileSchema(schema: JsonSchema | StandardSchema, role: SchemaRole): CompiledSchema {
  if (isUnchecked(schema)) {
    if (role === 'input') checkType(schema, role)
    return { json: schema, validate: value => ({ ok: true, value }) }
  }
  if (isStandardSchema(schema)) {
    const json = standardToJson(schema, role)
    checkSchema(json, role)
    return { json, validate: validateStandard(schema, role) }
  }
  if (isObject(schema)) checkForeign(schema, role)
  if (!isObject(schema) || Object.values(schema).some(value => typeof value === 'function')) {
    throw new SchemaError(role, `its ${role} is neither a JSON Schema object nor a Standard Schema; ${LIBRARIES}`)
  }
  checkSchema(schema, role)
  return { json: schema, validate: compileJsonSchema(schema, role) }
}

export interface OutputSchema {
  readonly json: JsonSchema
  /** Converts a value to JSON, validated and parsed. Throws a TypeError for values that JSON cannot represent. */
  encode(value: unknown): Checked | Promise<Checked>
}

/** Compiles an output schema. Throws like `compileSchema`, also for a library's JSON Schema that ajv cannot compile. */
export function compileOutput(schema: JsonSchema | StandardSchema): OutputSchema {
  const { json, validate } = compileSchema(schema, 'output')
  if (!isStandardSchema(schema)) return { json, encode: value => encodeJson(value, validate) }
  // A library can return a value that its own JSON Schema rejects, such as a text trimmed after its length check.
  const matches = compileJsonSchema(json, 'output')
  const encodeParsed = (parsed: Checked) => (parsed.ok ? encodeJson(parsed.value, matches) : parsed)
  return {
    json,
    encode(value) {
      // Validates the original value first, then as JSON: a Date becomes a string.
      const retry = (first: Checked) =>
        first.ok || typeof value !== 'object' || value === null ? first : validate(JSON.parse(toJson(value) ?? 'null'))
      const first = validate(value)
      const parsed = first instanceof Promise ? first.then(retry) : retry(first)
      return parsed instanceof Promise ? parsed.then(encodeParsed) : encodeParsed(parsed)
    },
  }
}

function encodeJson<Result>(value: unknown, validate: (value: unknown) => Result): Result | Checked {
  const text = toJson(value)
  const message = value === undefined ? 'is missing: the handler returned nothing' : 'must be a JSON value'
  if (text === undefined) return { ok: false, problems: explainIssues([{ message }], 'output') }
  return validate(JSON.parse(text))
}

const DIFFERENT = [
  ...['dependencies', 'additionalItems', '$id', '$anchor', '$dynamicRef', '$dynamicAnchor', '$vocabulary'],
  ...['prefixItems', 'unevaluatedItems', 'unevaluatedProperties', 'dependentSchemas', 'dependentRequired'],
  ...['minContains', 'maxContains', 'contentSchema'],
]

function isSameInBoth(schema: JsonSchema): boolean {
  if (DIFFERENT.some(keyword => keyword in schema) || Array.isArray(schema['items'])) return false
  // Draft-07 ignores keywords next to `$ref`.
  const ignored = Object.keys(schema).filter(key => !['$ref', 'title', 'description', '$comment'].includes(key))
  return !('$ref' in schema) || ignored.length === 0
}

export function advertisedSchema(schema: JsonSchema): JsonSchema {
  if (!isDraft07(schema) || ![...subschemas(schema)].every(({ schema: part }) => isSameInBoth(part))) return schema
  const { $schema: _, ...rest } = schema
  return rest
}

function createValidator(schema: JsonSchema, dialect: Dialect, options: Options): ValidateFunction {
  const parts = [...subschemas(schema)].map(({ schema: part }) => part)
  const inherited = (name: unknown) => typeof name === 'string' && name in Object.prototype
  // A shared instance would keep every schema, and equal `$id`s would conflict.
  const ajv = createLinearAjv(dialect, {
    ...options,
    meta: parts.some(part => /^https?:\/\/json-schema\.org\//.test(`${part['$ref']}`)),
    // This option is slower, and needed only for inherited property names.
    ownProperties: parts.some(({ required, properties }) =>
      [required ?? [], Object.keys(properties ?? {})].flat().some(inherited),
    ),
  })
  return ajv.compile(copyForAjv(schema))
}

function compileOrExplain(schema: JsonSchema, dialect: Dialect, role: SchemaRole): ValidateFunction {
  let validates: ValidateFunction
  try {
    validates = createValidator(schema, dialect, {})
  } catch (cause) {
    const missing = cause instanceof Error && 'missingRef' in cause ? cause.missingRef : undefined
    if (missing !== undefined) {
      const fix = 'external schemas are not fetched, so put it under $defs'
      throw new SchemaError(role, `its ${role} schema refers to "${missing}", which is not in it; ${fix}`, { cause })
    }
    throw new SchemaError(role, `its ${role} schema cannot be compiled: ${errorText(cause)}`, { cause })
  }
  if ('$async' in validates)
    throw new SchemaError(role, `its ${role} schema cannot use \`$async\`, which is not a JSON Schema keyword`)
  return validates
}

function validateObject(role: SchemaRole): (value: unknown) => Checked {
  const keyword = { keyword: 'type', instancePath: '', schemaPath: '#/type', params: { type: 'object' } }
  const error = { ...keyword, message: 'must be object' }
  return value =>
    isObject(value)
      ? { ok: true, value }
      : { ok: false, problems: explainErrors([{ ...error, data: value }], value, role) }
}

function compileJsonSchema(schema: JsonSchema, role: SchemaRole): (value: unknown) => Checked {
  if (schema['type'] === 'object' && Object.keys(schema).length === 1) return validateObject(role)
  const dialect = dialectOf(schema, role)
  let compiled: ValidateFunction | undefined
  if (surelyCompiles(schema, dialect)) needCompiler()
  else compiled = compileOrExplain(schema, dialect, role)
  let comparesItems = true
  let thorough: ValidateFunction | undefined
  let references = 0
  let failed: unknown
  function compileOnce(): ValidateFunction {
    if (failed !== undefined) throw failed
    // Outside of the `try`, because a missing package can be installed again before the next call.
    loadCompiler()
    comparesItems = JSON.stringify(schema).includes('"uniqueItems"')
    references = [...subschemas(schema)].filter(({ schema: part }) => isReference(part)).length
    try {
      return compileOrExplain(schema, dialect, role)
    } catch (error) {
      failed = error
      throw error
    }
  }
  function findErrors(validates: ValidateFunction, value: unknown): readonly ErrorObject[] {
    const first = validates.errors ?? []
    validates.errors = null
    // A large value gets its first error only.
    if (!isSmall(value)) return first
    thorough ??= createValidator(schema, dialect, { allErrors: true })
    try {
      // Each error is an object.
      allowReferences(REFERENCES / 10)
      thorough(value)
      return thorough.errors ?? first
    } catch (error) {
      if (error instanceof TooMuchWork) return first
      throw error
    } finally {
      thorough.errors = null
    }
  }
  return value => {
    compiled ??= compileOnce()
    const validates = compiled
    try {
      if (references > 0) allowReferences(REFERENCES + PASSES * references * countNodes(value))
      return validates(value)
        ? { ok: true, value }
        : { ok: false, problems: explainErrors(findErrors(validates, value), value, role) }
    } catch (error) {
      return problemOf(error, role)
    } finally {
      if (comparesItems) forgetKeys()
    }
  }
}

const SMALL = 1_000
/** Maximum characters: `allErrors` applies `pattern` even if `maxLength` failed. */
const SMALL_TEXT = 4_096
/** References that the validation of any value can follow, and the maximum passes of each reference for each node of the value. */
const REFERENCES = 100_000
const PASSES = 8

function countNodes(value: unknown): number {
  let count = 1
  if (typeof value === 'object') for (const key in value) count += countNodes(Reflect.get(value as object, key))
  return count
}

function isSmall(value: unknown): boolean {
  const waiting = [value]
  let [count, text] = [1, 0]
  while (waiting.length > 0) {
    const item = waiting.pop()
    if (typeof item === 'string') text += item.length
    if (text > SMALL_TEXT) return false
    if (typeof item !== 'object' || item === null) continue
    if (Array.isArray(item) && item.length > SMALL) return false
    // Object.values would copy all entries of a large object.
    for (const key in item) {
      if (++count > SMALL) return false
      waiting.push((item as Record<string, unknown>)[key])
    }
  }
  return true
}

function problemOf(error: unknown, role: SchemaRole): Checked {
  const problem = (message: string): Checked => ({ ok: false, problems: explainIssues([{ message }], role) })
  if (error instanceof TooMuchWork) return problem('has too many nested alternatives to be checked')
  // ajv calls `valueOf` and `toString` of the value for `const` and `enum`.
  if (error instanceof TypeError) return problem('has a key such as toString or valueOf')
  // V8 compiles a pattern at its first use, and can reject it then.
  if (error instanceof SyntaxError) return problem('cannot be checked: a pattern of its schema is too large')
  return tooDeep(error, role)
}
