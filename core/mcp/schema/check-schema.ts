// Checks author schemas at startup: size, dialect, meta-schema and references.
import type { ErrorObject, ValidateFunction } from 'ajv'
import { attempt } from '../../http/describe-thrown.ts'
import { nearest } from '../nearest.ts'
import { isObject } from '../wire/message.ts'
import type { JsonSchema } from '../wire/protocol.ts'
import { DIALECTS, type Dialect, LENIENT } from './ajv.ts'
import { BUILT_META_VALIDATORS } from './built-meta-validators.ts'
import { type SchemaRole, stepsOf } from './explain-errors.ts'
import { subschemas } from './subschemas.ts'

export class SchemaError extends Error {
  /** The path starts with `input` or `output`. */
  readonly at: readonly (string | number)[]

  constructor(at: SchemaRole | SchemaError['at'], text: string, options?: ErrorOptions) {
    super(text, options)
    this.name = 'SchemaError'
    this.at = [at].flat()
  }
}

const withoutScheme = (uri: string) => uri.replace(/^https?:/, '').replace(/#$/, '')

export function dialectOf({ $schema }: JsonSchema, role: SchemaRole): Dialect {
  if ($schema === undefined) return 'draft 2020-12'
  for (const dialect of Object.keys(DIALECTS) as Dialect[]) {
    if (typeof $schema === 'string' && withoutScheme($schema) === withoutScheme(DIALECTS[dialect].id)) return dialect
  }
  const supported = Object.entries(DIALECTS).map(([name, { id }]) => `${name} ("${id}")`)
  const what = `its ${role} schema is of the dialect ${JSON.stringify($schema)}`
  throw new SchemaError(role, `${what}; supported: ${supported.join(', ')}`)
}

/** Throws for a schema that is invalid, too large, circular, or an input that is not an object. */
export function checkSchema(schema: JsonSchema, role: SchemaRole): void {
  const dialect = dialectOf(schema, role)
  for (const {
    schema: { $schema },
  } of subschemas(schema)) {
    if ($schema === undefined || dialectOf({ $schema }, role) === dialect) continue
    throw new SchemaError(role, `its ${role} schema mixes dialects: ${dialect} and ${JSON.stringify($schema)}`)
  }
  checkMetaSchema(schema, dialect, role)
  checkCircles(schema, role)
  if (role === 'input') checkType(schema, role)
}

export function checkType(schema: JsonSchema, role: SchemaRole): void {
  if (schema['type'] === 'object') return
  const what = `its input schema's \`type\` must be "object" (it is ${JSON.stringify(schema['type']) ?? 'absent'})`
  throw new SchemaError(role, `${what}; wrap the value into an object's property`)
}

const validators = new Map<Dialect, ValidateFunction | undefined>()

const MAX_LOCATIONS = 3
const MAX_FOUND = 80

function checkMetaSchema(schema: JsonSchema, dialect: Dialect, role: SchemaRole): void {
  const { id, create } = DIALECTS[dialect]
  const validate = BUILT_META_VALIDATORS[dialect] ?? validators.get(dialect) ?? create(LENIENT).getSchema(id)
  validators.set(dialect, validate)
  if (validate === undefined || validate(schema)) return
  const errors = validate.errors ?? []
  const pointers = [...new Set(errors.map(({ instancePath }) => instancePath))].slice(0, MAX_LOCATIONS)
  const texts = pointers.map(pointer => {
    const here = errors.filter(({ instancePath }) => instancePath === pointer)
    return `#${pointer} ${reasonOf(schema, pointer, here.find(({ keyword }) => keyword === 'enum') ?? here[0])}`
  })
  const text = `its ${role} schema is not valid ${dialect}: ${texts.join('; ')}`
  throw new SchemaError([role, ...stepsOf(pointers[0] ?? '', schema)], text)
}

function reasonOf(schema: JsonSchema, pointer: string, error: ErrorObject | undefined): string {
  const allowed: unknown = error?.params['allowedValues']
  if (!Array.isArray(allowed)) return error?.message ?? 'is not valid'
  const found = valueAt(schema, stepsOf(pointer, schema))
  const known = allowed.map(String)
  const near = typeof found === 'string' ? nearest(found, known) : undefined
  const hint = near === undefined ? '' : `did you mean "${near}"? `
  const is = typeof found === 'string' ? JSON.stringify(found.slice(0, MAX_FOUND)) : `of another kind (${typeof found})`
  return `is ${is}; ${hint}available: ${known.join(', ')}`
}

const valueAt = (root: unknown, steps: readonly (string | number)[]) =>
  steps.reduce<unknown>(
    (part, step) => (Object.hasOwn(Object(part), step) ? Reflect.get(Object(part), step) : undefined),
    root,
  )

function targetOf(ref: unknown, root: JsonSchema): JsonSchema | undefined {
  if (typeof ref !== 'string' || !/^#(?:\/|$)/.test(ref)) return undefined
  const found = attempt(() => valueAt(root, stepsOf(decodeURIComponent(ref.slice(1)), root)))
  return isObject(found) ? found : undefined
}

const pointerOf = (steps: readonly string[]) =>
  ['#', ...steps.map(step => step.replaceAll('~', '~0').replaceAll('/', '~1'))].join('/')

function checkCircles(root: JsonSchema, role: SchemaRole): void {
  const paths = new Map<JsonSchema, readonly string[]>()
  for (const { schema, path } of subschemas(root)) {
    // References have another meaning below an `$id`.
    if (schema !== root && schema['$id'] !== undefined) return
    paths.set(schema, path)
  }
  const free = new Set<JsonSchema>()
  const stack: JsonSchema[] = []
  function follow(schema: JsonSchema): void {
    if (free.has(schema)) return
    const from = stack.indexOf(schema)
    if (from !== -1) {
      const steps = [...stack.slice(from), schema].map(part => paths.get(part) ?? [])
      const what = `its ${role} schema leads back to itself without a step into the value, so checking would never end`
      throw new SchemaError([role, ...(steps[0] ?? [])], `${what}: ${steps.map(pointerOf).join(' -> ')}`)
    }
    stack.push(schema)
    const { $ref, allOf = [], oneOf = [], not, if: condition } = schema
    for (const next of [targetOf($ref, root), [allOf, oneOf].flat(), not, condition].flat()) {
      if (isObject(next)) follow(next)
    }
    stack.pop()
    free.add(schema)
  }
  for (const schema of paths.keys()) follow(schema)
}

const SOUND: ReadonlySet<string> = new Set([
  ...['$comment', 'title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['type', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'required', 'properties'],
  ...['additionalProperties', 'propertyNames', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'definitions'],
])
const SOUND_2020: ReadonlySet<string> = new Set(['$defs', 'prefixItems'])

const isScalar = (value: unknown) => value === null || ['string', 'number', 'boolean'].includes(typeof value)

const DECIDED: Readonly<Record<string, (value: unknown, root: JsonSchema) => boolean>> = {
  $schema: (value, root) => value === root['$schema'],
  $ref: (value, root) => /^#(?:\/(?:\$defs|definitions)\/[\w.-]+)?$/.test(`${value}`) && !!targetOf(value, root),
  pattern: value => typeof value === 'string' && attempt(() => new RegExp(value, 'u')) !== undefined,
  format: value => /^[a-z][a-z-]*$/.test(`${value}`) && !(`${value}` in Object.prototype),
  enum: value => Array.isArray(value) && value.length > 0 && value.every(isScalar),
  const: isScalar,
  items: value => isObject(value) || typeof value === 'boolean',
}

/** Characters. Larger schemas are compiled at startup, because compilation would delay the first call. */
const MAX_LAZY = 8_192

/** True if compilation cannot fail and can be lazy. Compiling 1,000 tools at startup takes 2 s of CPU time. */
export function surelyCompiles(root: JsonSchema, dialect: Dialect): boolean {
  if (JSON.stringify(root).length > MAX_LAZY) return false
  const isSound = ([keyword, value]: [string, unknown]): boolean => {
    if (SOUND.has(keyword) || value === undefined) return true
    if (SOUND_2020.has(keyword)) return dialect === 'draft 2020-12'
    if (Object.hasOwn(DECIDED, keyword)) return DECIDED[keyword]?.(value, root) ?? false
    return keyword.startsWith('x-') && isScalar(value)
  }
  return [...subschemas(root)].every(({ schema }) => {
    // ajv reads inherited keywords too.
    const prototype = Object.getPrototypeOf(schema)
    return (prototype === Object.prototype || prototype === null) && Object.entries(schema).every(isSound)
  })
}
