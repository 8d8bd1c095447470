// What an author gave as `input` or `output`: plain JSON Schema for ajv, Standard Schemas for their library. Checked at
// start-up, once a definition; what will surely compile is compiled at its first use, and a call then only runs it.
import type { ErrorObject, Options, ValidateFunction } from 'ajv'
import { errorText } from '../../http/errors.ts'
import type { StandardResult, StandardSchema } from '../infer.ts'
import { isObject } from '../is-object.ts'
import type { JsonSchema } from '../protocol.ts'
import { explainErrors, explainIssues, type SchemaRole } from './explain-errors.ts'
import { findCircle } from './find-circle.ts'
import { checkForeign } from './foreign-schema.ts'
import { addLinearKeywords, forgetKeys } from './linear-keywords.ts'
import { loadCompiler, needCompiler } from './load-ajv.ts'
import { DIALECTS, type Dialect, LENIENT, metaSchemaProblems } from './meta-schema.ts'
import { subschemas } from './subschemas.ts'
import { surelyCompiles } from './surely-compiles.ts'

/** The outcome of a validation; `problems` are lines for the model: which value is wrong, and why. */
export type Checked = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problems: string }

export interface CompiledSchema {
  /** What clients are shown. */
  readonly json: JsonSchema
  /** Never throws for a value, however odd. A plain JSON Schema answers at once and leaves the value as it is. */
  validate(value: unknown): Checked | Promise<Checked>
}

/** A schema that breaks the rules of its dialect, and the keys that lead to the first place. */
export class SchemaFault extends Error {
  readonly steps: readonly (string | number)[]

  constructor(text: string, steps: readonly (string | number)[]) {
    super(text)
    this.name = 'SchemaFault'
    this.steps = steps
  }
}

/**
 * Checks and compiles a schema. Throws a text for the author when it is invalid, of a dialect other than draft 2020-12 and
 * draft-07, too large (64 levels, 5,000 subschemas), refers to a schema outside itself (nothing is ever fetched),
 * is an input that is no object, or a Standard Schema that cannot give its JSON Schema.
 */
export function compileSchema(schema: JsonSchema | StandardSchema, role: SchemaRole): CompiledSchema {
  if (isStandardSchema(schema)) return compileStandardSchema(schema, role)
  if (isObject(schema)) checkForeign(schema, role)
  if (!isObject(schema) || Object.values(schema).some(value => typeof value === 'function')) {
    throw new Error(`its ${role} is neither a JSON Schema object nor a Standard Schema; ${LIBRARIES}`)
  }
  checkShape(schema, role)
  return { json: schema, validate: compileJsonSchema(schema, role) }
}

const LIBRARIES =
  'zod >= 4.2 and arktype >= 2.1.28 fit as they are, valibot through toStandardJsonSchema of @valibot/to-json-schema'

const FIXES: Readonly<Record<string, string>> = {
  zod: 'this is zod 3 or an early 4: npm install zod@latest, which is 4.2 or later',
  valibot: 'write toStandardJsonSchema(v.object({ ... })), from @valibot/to-json-schema',
  arktype: 'npm install arktype@latest, which is 2.1.28 or later',
}
const fixFor = (vendor: string): string => FIXES[vendor] ?? LIBRARIES

export const isStandardSchema = (schema: unknown): schema is StandardSchema =>
  ((typeof schema === 'object' && schema !== null) || typeof schema === 'function') && '~standard' in schema

function compileStandardSchema(schema: StandardSchema, role: SchemaRole): CompiledSchema {
  const standard = schema['~standard']
  const json = standardToJson(standard, role)
  checkShape(json, role)
  const judge = (result: StandardResult<unknown>): Checked =>
    result.issues ? { ok: false, problems: explainIssues(result.issues, role) } : { ok: true, value: result.value }
  return {
    json,
    validate(value) {
      try {
        const result = standard.validate(value)
        return 'then' in result ? Promise.resolve(result).then(judge).catch(tooDeep(role)) : judge(result)
      } catch (error) {
        return tooDeep(role)(error)
      }
    },
  }
}

function standardToJson(standard: StandardSchema['~standard'], role: SchemaRole): JsonSchema {
  const convert = standard.jsonSchema?.[role]
  if (typeof convert !== 'function') {
    throw new Error(
      `its ${role}, a schema of ${standard.vendor}, cannot give its JSON Schema; ${fixFor(standard.vendor)}`,
    )
  }
  try {
    // The spread leaves out what zod hides on its result; some vendor may not hide it.
    const { '~standard': _, ...json }: JsonSchema = {
      ...convert.call(standard.jsonSchema, { target: 'draft-2020-12' }),
    }
    return json
  } catch (cause) {
    const reason = `${standard.vendor} cannot give the JSON Schema of its ${role}: ${errorText(cause)}`
    throw new Error(`${reason} (${LIBRARIES})`, { cause })
  }
}

const withoutScheme = (uri: string) => uri.replace(/^https?:/, '').replace(/#$/, '')

function dialectOf(schema: JsonSchema, role: SchemaRole): Dialect {
  const { $schema } = schema
  if ($schema === undefined) return 'draft 2020-12'
  for (const dialect of Object.keys(DIALECTS) as Dialect[]) {
    if (typeof $schema === 'string' && withoutScheme($schema) === withoutScheme(DIALECTS[dialect].id)) return dialect
  }
  const supported = Object.entries(DIALECTS).map(([name, { id }]) => `${name} ("${id}")`)
  throw new Error(`its ${role} schema is of the dialect ${JSON.stringify($schema)}; supported: ${supported.join(', ')}`)
}

/** What holds for either kind of schema: its size, its dialect and that one's rules, an object as an input's root. */
function checkShape(schema: JsonSchema, role: SchemaRole): void {
  const dialect = dialectOf(schema, role)
  for (const { schema: part } of subschemas(schema)) {
    if (part['$schema'] !== undefined && dialectOf(part, role) !== dialect) {
      throw new Error(`its ${role} schema mixes dialects: ${dialect} and ${JSON.stringify(part['$schema'])}`)
    }
  }
  const problems = metaSchemaProblems(schema, dialect)
  const [first] = problems
  if (first) {
    const text = `its ${role} schema is not valid ${dialect}: ${problems.map(({ text }) => text).join('; ')}`
    throw new SchemaFault(text, first.steps)
  }
  const circle = findCircle(schema)
  if (circle) {
    const way = circle.pointers.join(' -> ')
    const text = `its ${role} schema leads back to itself without a step into the value, so checking would never end: ${way}`
    throw new SchemaFault(text, circle.steps)
  }
  if (role === 'input' && schema['type'] !== 'object') {
    const found = JSON.stringify(schema['type']) ?? 'absent'
    throw new Error(
      `its input schema's \`type\` must be "object" (it is ${found}); wrap the value into an object's property`,
    )
  }
}

function createValidator(schema: JsonSchema, dialect: Dialect, options: Options): ValidateFunction {
  const usesMetaSchema = [...subschemas(schema)].some(({ schema: part }) =>
    /^https?:\/\/json-schema\.org\//.test(`${part['$ref']}`),
  )
  // One instance a schema: a shared one would keep every schema for ever, and let two of one `$id` clash.
  const ajv = DIALECTS[dialect].create({
    ...LENIENT,
    ...options,
    verbose: true,
    validateSchema: false,
    meta: usesMetaSchema,
    ownProperties: namesInherited(schema),
  })
  addLinearKeywords(ajv)
  return ajv.compile(schema)
}

/** True when a property is called like something every object inherits: only then ajv must look at own ones. */
function namesInherited(schema: JsonSchema): boolean {
  const inherited = (name: unknown) => typeof name === 'string' && name in Object.prototype
  for (const { schema: part } of subschemas(schema)) {
    const { required, properties } = part
    if (Array.isArray(required) && required.some(inherited)) return true
    if (isObject(properties) && Object.keys(properties).some(inherited)) return true
  }
  return false
}

/** What `{ type: 'object' }` says, which a tool without `input` has: no validator needs to be compiled for it. */
function validateObject(role: SchemaRole): (value: unknown) => Checked {
  const keyword = { keyword: 'type', instancePath: '', schemaPath: '#/type', params: { type: 'object' } }
  const error = { ...keyword, message: 'must be object' }
  return value =>
    isObject(value)
      ? { ok: true, value }
      : { ok: false, problems: explainErrors([{ ...error, data: value }], value, role) }
}

/** Compiles a JSON Schema whose shape is checked. Throws a text for the author where ajv cannot. */
export function compileJsonSchema(schema: JsonSchema, role: SchemaRole): (value: unknown) => Checked {
  if (schema['type'] === 'object' && Object.keys(schema).length === 1) return validateObject(role)
  const dialect = dialectOf(schema, role)
  // A thousand tools took 1.5 s of a start to compile, and most are not called before the next one.
  let compiled: ValidateFunction | undefined
  if (surelyCompiles(schema, dialect)) needCompiler()
  else compiled = compileOrExplain(schema, dialect, role)
  const levels = refers(schema) ? SHALLOW : Number.POSITIVE_INFINITY
  let thorough: ValidateFunction | undefined
  /** What compiling threw: it would again, and take as long. */
  let failed: unknown
  function compileOnce(): ValidateFunction {
    if (failed !== undefined) throw failed
    // Files that are away now may be back for the next call.
    loadCompiler()
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
    // Every error of a large hostile value would be an object of its own: those answer with their first one.
    if (!isSmall(value, levels)) return first
    thorough ??= createValidator(schema, dialect, { allErrors: true })
    thorough(value)
    const errors = thorough.errors ?? first
    thorough.errors = null
    return errors
  }
  return value => {
    compiled ??= compileOnce()
    const validates = compiled
    try {
      return validates(value)
        ? { ok: true, value }
        : { ok: false, problems: explainErrors(findErrors(validates, value), value, role) }
    } catch (error) {
      return cannotTell(error, role)
    } finally {
      forgetKeys()
    }
  }
}

function compileOrExplain(schema: JsonSchema, dialect: Dialect, role: SchemaRole): ValidateFunction {
  let validates: ValidateFunction
  try {
    validates = createValidator(schema, dialect, {})
  } catch (cause) {
    const missing = cause instanceof Error && 'missingRef' in cause ? cause.missingRef : undefined
    if (missing !== undefined) {
      const fix = 'nothing is fetched, so put what it needs under $defs'
      throw new Error(`its ${role} schema refers to "${missing}", which is not in it; ${fix}`, { cause })
    }
    throw new Error(`its ${role} schema cannot be compiled: ${errorText(cause)}`, { cause })
  }
  if ('$async' in validates)
    throw new Error(`its ${role} schema may not use \`$async\`, which is no JSON Schema keyword`)
  return validates
}

const SMALL = 1_000
/** Characters of all texts: what is too long for its `maxLength` would be held against its `pattern` all the same. */
const SMALL_TEXT = 4_096
/** Levels, where a schema refers to itself: all alternatives of each would be tried, a multiple for every level. */
const SHALLOW = 4

const refers = (schema: JsonSchema): boolean =>
  [...subschemas(schema)].some(({ schema: part }) => '$ref' in part || '$dynamicRef' in part || '$recursiveRef' in part)

function isSmall(value: unknown, levels: number): boolean {
  const waiting = [{ item: value, depth: 0 }]
  let [count, text] = [1, 0]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { item, depth } = next
    if (typeof item === 'string') text += item.length
    if (depth > levels || text > SMALL_TEXT) return false
    if (typeof item !== 'object' || item === null) continue
    if (Array.isArray(item) && item.length > SMALL) return false
    // Not by Object.values: of an object with very many keys it would copy them all before one is counted.
    for (const key in item) {
      if (++count > SMALL) return false
      waiting.push({ item: (item as Record<string, unknown>)[key], depth: depth + 1 })
    }
  }
  return true
}

/** The problem of a value that a compiled schema throws at. */
function cannotTell(error: unknown, role: SchemaRole): Checked {
  const problem = (message: string): Checked => ({ ok: false, problems: explainIssues([{ message }], role) })
  // ajv compares objects with `const` and `enum` by methods that a value may have in a form of its own.
  if (error instanceof TypeError) return problem('has a key such as toString or valueOf')
  // V8 makes the code of a pattern when it is first used, and finds only then that it is too much.
  if (error instanceof SyntaxError) return problem('cannot be checked: a pattern of its schema is too large')
  return tooDeep(role)(error)
}

// A recursive schema follows a value as deep as it goes, and the stack ends first.
const tooDeep =
  (role: SchemaRole) =>
  (error: unknown): Checked => {
    if (error instanceof RangeError)
      return { ok: false, problems: explainIssues([{ message: 'is nested too deeply' }], role) }
    throw error
  }
