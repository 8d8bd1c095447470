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

/** Subschemas: each property is a level of the code that ajv writes, and thousands are too many for the stack. */
const MAX_PARTS = 200

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

/** False where there is doubt. `root` keeps the rules of its dialect's meta-schema. */
export function surelyCompiles(root: JsonSchema, dialect: Dialect): boolean {
  let parts = 0
  for (const { schema } of subschemas(root)) {
    const prototype = Object.getPrototypeOf(schema)
    // ajv sees inherited keywords too.
    if (++parts > MAX_PARTS || (prototype !== Object.prototype && prototype !== null)) return false
    const keywords = Object.getOwnPropertyNames(schema)
    if (!keywords.every(keyword => isSound(keyword, schema[keyword], root, dialect))) return false
  }
  return true
}
