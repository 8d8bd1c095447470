// Whether ajv will compile a schema for certain, told by its keywords alone. For schema.ts: such a schema is compiled when
// it is first used; any other at start-up, where its author still hears of what is wrong.
import { isObject } from '../is-object.ts'
import type { JsonSchema } from '../protocol.ts'
import type { Dialect } from './meta-schema.ts'
import { subschemas } from './subschemas.ts'

/** Keywords of which the meta-schema says all that ajv asks. */
const SOUND: ReadonlySet<string> = new Set([
  ...['$comment', 'title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['type', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'required', 'properties'],
  ...['additionalProperties', 'propertyNames', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'definitions'],
])

/** Draft-07 knows them not, and its meta-schema does not look into them. */
const SOUND_2020: ReadonlySet<string> = new Set(['$defs', 'prefixItems'])

/** Subschemas, `true` and `false` among them: each is a level of the code that ajv writes, and thousands are too many for the stack. */
const MAX_PARTS = 200
/** Of all its parts: each is code, too, that the first call would wait for. */
const MAX_REQUIRED = 1_000

const isScalar = (value: unknown) =>
  value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

const FORMAT = /^[a-z][a-z-]*$/

function isPattern(value: unknown): boolean {
  try {
    return typeof value === 'string' && new RegExp(value, 'u') instanceof RegExp
  } catch {
    return false
  }
}

/** A name under `$defs` or `definitions` of the root, without anything to unescape; or the root. */
const LOCAL = /^#(?:\/(\$defs|definitions)\/([\w.-]+))?$/

function isLocal(ref: unknown, root: JsonSchema): boolean {
  const [found, group = '', name] = (typeof ref === 'string' && LOCAL.exec(ref)) || []
  if (found === undefined) return false
  if (name === undefined) return true
  const named = root[group]
  return isObject(named) && Object.hasOwn(named, name) && (isObject(named[name]) || typeof named[name] === 'boolean')
}

/** Keywords whose value decides. */
const DECIDED: Readonly<Record<string, (value: unknown, root: JsonSchema) => boolean>> = {
  $schema: (value, root) => value === root['$schema'],
  $ref: isLocal,
  pattern: isPattern,
  format: value => typeof value === 'string' && FORMAT.test(value) && !(value in Object.prototype),
  enum: value => Array.isArray(value) && value.length > 0 && value.every(isScalar),
  const: isScalar,
  items: value => isObject(value) || typeof value === 'boolean',
}

function isSound(keyword: string, value: unknown, root: JsonSchema, dialect: Dialect): boolean {
  if (SOUND.has(keyword) || value === undefined) return true
  if (SOUND_2020.has(keyword)) return dialect === 'draft 2020-12'
  if (Object.hasOwn(DECIDED, keyword)) return DECIDED[keyword]?.(value, root) ?? false
  // An annotation; below one that is an object ajv looks for names of schemas.
  return keyword.startsWith('x-') && isScalar(value)
}

/** How many of a schema's own parts are `true` or `false`. */
function countBooleans(schema: JsonSchema): number {
  const groups = [schema, ...GROUPS.map(keyword => schema[keyword])]
  const count = (group: unknown) =>
    isObject(group) || Array.isArray(group) ? Object.values(group).filter(part => typeof part === 'boolean').length : 0
  return groups.reduce<number>((sum, group) => sum + count(group), 0)
}

/** Whose values are schemas. */
const GROUPS = ['properties', '$defs', 'definitions', 'allOf', 'anyOf', 'oneOf', 'prefixItems']

const lengthOf = (list: unknown) => (Array.isArray(list) ? list.length : 0)

/** False where there is doubt. `root` keeps the rules of its dialect's meta-schema, and has no circle (find-circle.ts). */
export function surelyCompiles(root: JsonSchema, dialect: Dialect): boolean {
  let [parts, required] = [0, 0]
  for (const { schema } of subschemas(root)) {
    const prototype = Object.getPrototypeOf(schema)
    parts += 1 + countBooleans(schema)
    required += lengthOf(schema['required'])
    if (parts > MAX_PARTS || required > MAX_REQUIRED) return false
    // ajv sees inherited keywords too.
    if (prototype !== Object.prototype && prototype !== null) return false
    const keywords = Object.getOwnPropertyNames(schema)
    if (!keywords.every(keyword => isSound(keyword, schema[keyword], root, dialect))) return false
  }
  return true
}
