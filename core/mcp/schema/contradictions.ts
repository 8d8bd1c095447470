// Finds parts of a JSON Schema that contradict each other, and parts that validators ignore. For definition-warnings.ts.
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../is-object.ts'
import { nearest } from '../nearest.ts'
import type { JsonSchema } from '../protocol.ts'
import { subschemas } from './subschemas.ts'

interface Contradiction {
  readonly why: string
  /** Keywords and names from the root. */
  readonly path: readonly string[]
}

/** Lower and upper limits, by the type of value that they apply to. */
const LIMITS = {
  number: ['minimum', 'maximum'],
  string: ['minLength', 'maxLength'],
  array: ['minItems', 'maxItems'],
  object: ['minProperties', 'maxProperties'],
} as const

/** Keywords that apply to values of one type only. */
const OF_TYPE: ReadonlyArray<readonly [type: string, keywords: readonly string[]]> = [
  ['number', [...LIMITS.number, 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
  ['string', [...LIMITS.string, 'pattern', 'contentEncoding', 'contentMediaType']],
  ['array', [...LIMITS.array, 'items', 'prefixItems', 'uniqueItems', 'contains']],
  ['object', [...LIMITS.object, 'properties', 'required', 'additionalProperties', 'patternProperties']],
]

const OTHER_KEYWORDS = [
  ...['$schema', '$id', '$ref', '$defs', '$comment', '$anchor', 'definitions', 'type', 'enum', 'const', 'default'],
  ...['examples', 'title', 'description', 'format', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'readOnly'],
  ...['writeOnly', 'deprecated', 'propertyNames', 'minContains', 'maxContains', 'contentSchema', 'dependentRequired'],
  ...['dependentSchemas', 'dependencies', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties'],
]
const KEYWORDS: ReadonlySet<string> = new Set([...OF_TYPE.flatMap(([, keywords]) => keywords), ...OTHER_KEYWORDS])

const FORMATS: ReadonlySet<string> = new Set([
  ...['date', 'time', 'date-time', 'iso-time', 'iso-date-time', 'duration', 'email', 'idn-email', 'hostname', 'uuid'],
  ...['idn-hostname', 'ipv4', 'ipv6', 'uri', 'uri-reference', 'uri-template', 'iri', 'iri-reference', 'url', 'regex'],
  ...['json-pointer', 'relative-json-pointer', 'byte', 'binary', 'password', 'int32', 'int64', 'float', 'double'],
])

const typesOf = ({ type }: JsonSchema): readonly unknown[] => (type === undefined ? [] : [type].flat())

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

/** Integers are numbers. */
const hasType = (types: readonly unknown[], type: string) =>
  types.includes(type) || (type === 'number' && types.includes('integer'))

function sizeOf(value: unknown): readonly [keyof typeof LIMITS, number] | undefined {
  if (typeof value === 'number') return ['number', value]
  if (typeof value === 'string') return ['string', [...value].length]
  if (Array.isArray(value)) return ['array', value.length]
  return isObject(value) ? ['object', Object.keys(value).length] : undefined
}

/** Why a value can never be valid, judged by the keywords next to it only. */
function faultOf(value: unknown, schema: JsonSchema): string | undefined {
  const types = typesOf(schema)
  const isFraction = typeof value === 'number' && !Number.isInteger(value) && !types.includes('number')
  if (types.length > 0 && (isFraction || !hasType(types, typeOf(value)))) return `is not of type ${types.join(' or ')}`
  const { enum: values } = schema
  if (Array.isArray(values) && !values.some(one => isDeepStrictEqual(one, value))) return 'is not in `enum`'
  const [type, size] = sizeOf(value) ?? []
  if (type === undefined || size === undefined) return undefined
  const [least, most] = LIMITS[type]
  const [low, high] = [schema[least], schema[most]]
  if (typeof low === 'number' && size < low) return `is below \`${least}\` ${low}`
  return typeof high === 'number' && size > high ? `is above \`${most}\` ${high}` : undefined
}

function* inValues(schema: JsonSchema): Generator<readonly [keyword: string, why: string]> {
  for (const keyword of ['const', 'enum', 'default', 'examples']) {
    if (!(keyword in schema)) continue
    const isList = keyword === 'enum' || keyword === 'examples'
    const values = isList ? schema[keyword] : [schema[keyword]]
    for (const value of Array.isArray(values) ? values : []) {
      const fault = faultOf(value, schema)
      if (fault === undefined) continue
      yield [keyword, `\`${keyword}\` ${JSON.stringify(value)} ${fault}`]
      break
    }
  }
}

function* inKeywords(schema: JsonSchema): Generator<readonly [keyword: string, why: string]> {
  for (const [least, most] of Object.values(LIMITS)) {
    const [low, high] = [schema[least], schema[most]]
    if (typeof low === 'number' && typeof high === 'number' && low > high) {
      yield [least, `\`${least}\` ${low} is above \`${most}\` ${high}`]
    }
  }
  const types = typesOf(schema)
  for (const [type, keywords] of OF_TYPE) {
    const ignored = types.length === 0 || hasType(types, type) ? undefined : keywords.find(name => name in schema)
    if (ignored !== undefined) yield [ignored, `\`${ignored}\` is ignored: it is for type ${type}`]
  }
  const { pattern, format } = schema
  if (typeof pattern === 'string' && /^\/\^|\$\/[a-z]*$/.test(pattern)) {
    yield ['pattern', '`pattern` has the slashes of a JavaScript literal, so nothing matches; leave them out']
  }
  const near = typeof format === 'string' && !FORMATS.has(format) ? nearest(format, FORMATS) : undefined
  if (near !== undefined) yield ['format', `\`format\` "${format}" is ignored; did you mean "${near}"?`]
  for (const name of Object.keys(schema)) {
    const meant = KEYWORDS.has(name) ? undefined : nearest(name, KEYWORDS)
    if (meant !== undefined) yield [name, `\`${name}\` is ignored; did you mean \`${meant}\`?`]
  }
}

export const contradictionsIn = (root: JsonSchema): Contradiction[] =>
  [...subschemas(root)].flatMap(({ schema, path }) =>
    [...inValues(schema), ...inKeywords(schema)].map(([keyword, why]) => ({ why, path: [...path, keyword] })),
  )
