// Converts schemas of OpenAPI 3.0 and 3.1 to JSON Schema 2020-12 that always compiles: invalid keywords are left out and noted.

import type { JsonSchema } from '../../../core/index.ts'
import { isObject } from '../../../core/plugin.ts'
import { visibleText } from '../../families/texts/index.ts'
import { below, DocumentError, type Place } from '../document/place.ts'
import type { Found, References } from '../document/references.ts'

export interface Conversion {
  readonly references: References
  readonly version: '3.0' | '3.1'
  /** `request`: without `readOnly` properties. `response`: without `writeOnly` ones. */
  readonly direction: 'request' | 'response'
  /** Returns the name under `$defs` for the target of a `$ref`. */
  readonly define: (target: Found) => string
  readonly note: (place: Place, text: string) => void
}

/** Names under `$defs` that a schema refers to. `inPlace`: names that apply to the same value. */
export interface Uses {
  readonly all: Set<string>
  readonly inPlace: Set<string>
}

interface Position {
  readonly place: Place
  readonly base: string
  readonly depth: number
  readonly inPlace: boolean
}

type Keyword = (value: unknown, at: Position, converting: Converting) => unknown

interface Converting extends Conversion {
  readonly uses: Uses
  /** `readOnly` or `writeOnly` properties that are left out here or in a branch of `allOf`. */
  readonly omitted: ReadonlySet<string>
}

/** Maximum levels of one schema without `$ref`; core allows 64 of a complete schema. */
const MAX_DEPTH = 40
/** Maximum branches of `allOf` that are searched for `readOnly` and `writeOnly` properties. */
const MAX_BRANCHES = 200
/** Maximum `$ref`s that lead to a branch or a property. */
const MAX_STEPS = 4

type Schema = JsonSchema | boolean

export function convertSchema({ value, place }: Found, conversion: Conversion, uses: Uses): Schema {
  const at = { place, base: place.file.url.href, depth: 0, inPlace: true }
  return convert(value, at, { ...conversion, uses, omitted: new Set() })
}

const into = (at: Position, inPlace: boolean, ...keys: readonly (string | number)[]): Position => ({
  ...at,
  place: below(at.place, ...keys),
  depth: at.depth + 1,
  inPlace: at.inPlace && inPlace,
})

function convert(value: unknown, at: Position, converting: Converting): Schema {
  if (typeof value === 'boolean') return value
  if (value === null) {
    converting.note(at.place, 'is null instead of a schema: any value is accepted')
    return {}
  }
  if (!isObject(value)) throw new DocumentError(at.place, `a schema must be an object, not ${typeName(value)}`)
  if (at.depth > MAX_DEPTH) {
    converting.note(at.place, `is nested more than ${MAX_DEPTH} levels deep: any value is accepted`)
    return {}
  }
  const { $ref, $dynamicRef, $id } = value
  const here = typeof $id === 'string' ? { ...at, base: URL.parse($id, at.base)?.href ?? at.base } : at
  const ref = $ref ?? $dynamicRef
  if (ref === undefined) return convertKeywords(value, here, converting)
  const reference = convertRef(ref, here, converting)
  if (converting.version === '3.0') {
    return value['nullable'] === true ? { anyOf: [reference, { type: 'null' }] } : reference
  }
  const { $ref: _, $dynamicRef: __, ...rest } = value
  const siblings = convertKeywords(rest, here, converting)
  return typeof siblings === 'boolean' ? reference : { ...reference, ...siblings }
}

const typeName = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`)

function convertRef(ref: unknown, { place, base, inPlace }: Position, { references, define, uses }: Converting) {
  const from = below(place, '$ref')
  if (typeof ref !== 'string') throw new DocumentError(from, `$ref must be a string, not ${typeName(ref)}`)
  const name = define(references.target(ref, from, base))
  uses.all.add(name)
  if (inPlace) uses.inPlace.add(name)
  return { $ref: `#/$defs/${name}` }
}

function convertKeywords(schema: JsonSchema, at: Position, context: Converting): Schema {
  const converting = { ...context, omitted: omittedFrom(schema, at.place, context) }
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(schema)) {
    const keyword = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name] : undefined
    const converted = keyword?.(value, { ...at, place: below(at.place, name) }, converting)
    if (converted !== undefined) result[name] = converted
  }
  convertBinary(result)
  setExample(schema, result)
  addDiscriminator(schema, result)
  if (converting.version === '3.0') convertExclusive(schema, result)
  dropUnfit(result)
  const types = readTypes(result)
  // Some model vendors refuse arrays without `items`.
  if (types.includes('array') && result['items'] === undefined && !result['prefixItems']) result['items'] = {}
  if (converting.version !== '3.0' || schema['nullable'] !== true) return result
  return addNull(result)
}

const readTypes = ({ type }: Readonly<Record<string, unknown>>): string[] =>
  (type === undefined ? [] : [type].flat()) as string[]

/** Converts `format: binary` and `byte` to base64 in JSON. */
function convertBinary(result: Record<string, unknown>): void {
  const { format, contentMediaType, contentEncoding, type } = result
  const isBinary = format === 'binary' || format === 'byte'
  const isRaw = contentMediaType !== undefined && contentEncoding === undefined && (type ?? 'string') === 'string'
  if (!isBinary && !(isRaw && !isTextType(`${contentMediaType}`))) return
  if (isBinary) delete result['format']
  result['type'] ??= 'string'
  result['contentEncoding'] ??= 'base64'
}

const isTextType = (mediaType: string) => /^text\/|[/+](?:json|xml|yaml)\b/i.test(mediaType)

/** Keeps one short example. Longer examples cost more tokens than they are worth. */
function setExample({ example, examples }: JsonSchema, result: Record<string, unknown>): void {
  const [value = example] = Array.isArray(examples) ? examples : []
  if (['string', 'number', 'boolean'].includes(typeof value) && `${value}`.length <= MAX_EXAMPLE) {
    result['examples'] = [value]
  }
}

const MAX_EXAMPLE = 100

function addDiscriminator({ discriminator }: JsonSchema, result: Record<string, unknown>): void {
  if (!isObject(discriminator) || typeof discriminator['propertyName'] !== 'string') return
  const { description } = result
  const text = `The property \`${discriminator['propertyName']}\` selects the schema that applies.`
  result['description'] = typeof description === 'string' ? `${description}\n\n${text}` : text
}

/** Converts `exclusiveMinimum: true` of 3.0, which makes `minimum` exclusive. */
function convertExclusive(schema: JsonSchema, result: Record<string, unknown>): void {
  for (const [exclusive, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (schema[exclusive] !== true || result[limit] === undefined) continue
    result[exclusive] = result[limit]
    delete result[limit]
  }
}

/** Drops values that do not fit the type, which would be reported as contradictions of the tool. */
function dropUnfit(result: Record<string, unknown>): void {
  const types = readTypes(result)
  const { enum: values } = result
  const fits = (value: unknown) => hasType(value, types) && (!Array.isArray(values) || includesValue(value, values))
  if ('default' in result && !fits(result['default'])) delete result['default']
  if (!Array.isArray(result['examples'])) return
  const examples = result['examples'].filter(fits)
  if (examples.length > 0) result['examples'] = examples
  else delete result['examples']
}

const includesValue = (value: unknown, values: readonly unknown[]) =>
  values.some(one => one === value || (typeof one === 'object' && JSON.stringify(one) === JSON.stringify(value)))

function addNull(schema: Record<string, unknown>): JsonSchema {
  const { type, enum: values } = schema
  if (type === undefined) return { anyOf: [schema, { type: 'null' }] }
  return {
    ...schema,
    type: [...new Set([...readTypes(schema), 'null'])],
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
  }
}

/** Returns the names of properties that exist only in the other direction, also in branches of `allOf`. */
function omittedFrom(
  schema: JsonSchema,
  place: Place,
  { references, direction, omitted }: Converting,
): ReadonlySet<string> {
  const flag = direction === 'request' ? 'readOnly' : 'writeOnly'
  if (schema['properties'] === undefined && schema['allOf'] === undefined) return omitted
  const names = new Set(omitted)
  // The conversion of the `$ref` itself reports its faults.
  const targetOf = (value: unknown): unknown => {
    let found: Found = { value, place }
    for (let steps = 0; isObject(found.value) && typeof found.value['$ref'] === 'string'; steps++) {
      if (steps === MAX_STEPS) return undefined
      found = references.target(found.value['$ref'], found.place)
    }
    return found.value
  }
  // A Set also iterates over branches that are added during the iteration.
  const branches = new Set<unknown>([schema])
  for (const branch of branches) {
    if (!isObject(branch)) continue
    const { properties, allOf } = branch
    for (const [name, property] of isObject(properties) ? Object.entries(properties) : []) {
      const target = targetOf(property)
      if (isObject(target) && target[flag] === true) names.add(name)
    }
    for (const next of Array.isArray(allOf) ? allOf : []) {
      if (branches.size <= MAX_BRANCHES) branches.add(targetOf(next))
    }
  }
  return names.size === omitted.size ? omitted : names
}

const drop = (at: Position, { note }: Converting, text: string) => {
  note(at.place, text)
  return undefined
}

const text: Keyword = (value, at, converting) =>
  typeof value === 'string' ? value : drop(at, converting, `must be a string, not ${typeName(value)}: ignored`)

/** Cleans a text that models read. */
const shownText: Keyword = (value, at, converting) => {
  const converted = text(value, at, converting)
  return typeof converted === 'string' ? visibleText(converted) : converted
}

const flag: Keyword = (value, at, converting) => {
  if (typeof value !== 'boolean') return drop(at, converting, 'must be true or false: ignored')
  return value || undefined
}

const numeric: Keyword = (value, at, converting) =>
  typeof value === 'number' && Number.isFinite(value)
    ? value
    : drop(at, converting, `must be a number, not ${typeName(value)}: ignored`)

const exclusive: Keyword = (value, at, converting) =>
  typeof value === 'boolean' && converting.version === '3.0' ? undefined : numeric(value, at, converting)

const count: Keyword = (value, at, converting) =>
  Number.isInteger(value) && Number(value) >= 0
    ? value
    : drop(at, converting, 'must be an integer, at least 0: ignored')

const anyValue: Keyword = (value, at, converting) =>
  plainValue(value) ?? drop(at, converting, 'is nested too deeply: ignored')

const values: Keyword = (value, at, converting) => {
  if (Array.isArray(value) && value.length > 0) return plainValue([...new Set(value)])
  return drop(at, converting, 'must be a list with at least one value: ignored')
}

const names: Keyword = (value, at, converting) => {
  if (!Array.isArray(value) || !value.every(name => typeof name === 'string')) {
    return drop(at, converting, 'must be a list of property names: ignored')
  }
  const required = [...new Set(value)].filter(name => !converting.omitted.has(name))
  return required.length > 0 ? required : undefined
}

/** Converts a schema for the same value (`inPlace`) or a part of it. */
const oneSchema =
  (inPlace: boolean): Keyword =>
  (value, at, converting) =>
    convert(value, into(at, inPlace), { ...converting, omitted: inPlace ? converting.omitted : NONE })

const NONE: ReadonlySet<string> = new Set()

const items: Keyword = (value, at, converting) =>
  Array.isArray(value)
    ? drop(at, converting, 'must be one schema, not a list: any item is accepted')
    : oneSchema(false)(value, at, converting)

const schemas =
  (inPlace: boolean): Keyword =>
  (value, at, converting) => {
    if (!Array.isArray(value) || value.length === 0) {
      return drop(at, converting, 'must be a list with at least one schema: ignored')
    }
    const omitted = inPlace ? converting.omitted : NONE
    return value.map((one, index) => convert(one, into(at, inPlace, index), { ...converting, omitted }))
  }

const named =
  (keeps: (name: string, converting: Converting) => boolean): Keyword =>
  (value, at, converting) => {
    if (!isObject(value)) return drop(at, converting, `must be an object, not ${typeName(value)}: ignored`)
    const entries = Object.entries(value).filter(([name]) => keeps(name, converting))
    return Object.fromEntries(
      entries.map(([name, one]) => [name, convert(one, into(at, false, name), { ...converting, omitted: NONE })]),
    )
  }

function isPattern(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp
  } catch {
    return false
  }
}

const pattern: Keyword = (value, at, converting) =>
  typeof value === 'string' && isPattern(value)
    ? value
    : drop(at, converting, 'is not a regular expression of JSON Schema: ignored')

const type: Keyword = (value, at, converting) => {
  const types = [...new Set([value].flat())]
  if (types.length > 0 && types.every(isTypeName)) return types.length === 1 ? types[0] : types
  return drop(at, converting, `${JSON.stringify(plainValue(value))} is not a type: any value is accepted`)
}

const dependentRequired: Keyword = (value, at, converting) =>
  isObject(value) &&
  Object.values(value).every(list => Array.isArray(list) && list.every(one => typeof one === 'string'))
    ? Object.fromEntries(Object.entries(value).map(([name, list]) => [name, [...new Set(list as string[])]]))
    : drop(at, converting, 'must have a list of property names for each property: ignored')

/** Keywords that are not here are left out: `$id`, `$anchor` and `$defs`, `xml`, `externalDocs`, and extensions. */
const KEYWORDS: Readonly<Record<string, Keyword>> = {
  type,
  title: shownText,
  description: shownText,
  format: text,
  pattern,
  enum: values,
  const: anyValue,
  default: anyValue,
  deprecated: flag,
  uniqueItems: flag,
  multipleOf: (value, at, converting) =>
    typeof value === 'number' && value > 0 ? value : drop(at, converting, 'must be a number above 0: ignored'),
  minimum: numeric,
  maximum: numeric,
  exclusiveMinimum: exclusive,
  exclusiveMaximum: exclusive,
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minContains: count,
  maxContains: count,
  minProperties: count,
  maxProperties: count,
  contentEncoding: text,
  contentMediaType: text,
  properties: named((name, { omitted }) => !omitted.has(name)),
  patternProperties: named(isPattern),
  dependentSchemas: named(() => true),
  dependentRequired,
  required: names,
  items,
  additionalProperties: oneSchema(false),
  propertyNames: oneSchema(false),
  contains: oneSchema(false),
  unevaluatedItems: oneSchema(false),
  unevaluatedProperties: oneSchema(false),
  prefixItems: schemas(false),
  allOf: schemas(true),
  anyOf: schemas(true),
  oneOf: schemas(true),
  not: oneSchema(true),
  if: oneSchema(true),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: oneSchema(true),
  else: oneSchema(true),
}

const MAX_VALUE_DEPTH = 32

/** Copies a value. Undefined for values that are nested too deeply, such as cycles of YAML aliases. */
function plainValue(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_VALUE_DEPTH) return undefined
  const copy = (child: unknown) => plainValue(child, depth + 1)
  return Array.isArray(value)
    ? value.map(copy)
    : Object.fromEntries(Object.entries(value).map(([key, child]) => [key, copy(child)]))
}

const TYPE_OF: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: value => typeof value === 'string',
  number: value => typeof value === 'number',
  integer: value => Number.isInteger(value),
  boolean: value => typeof value === 'boolean',
  object: isObject,
  array: Array.isArray,
  null: value => value === null,
}

const isTypeName = (name: unknown): name is string => typeof name === 'string' && Object.hasOwn(TYPE_OF, name)

const hasType = (value: unknown, types: readonly string[]): boolean =>
  types.length === 0 || types.some(type => TYPE_OF[type]?.(value))
