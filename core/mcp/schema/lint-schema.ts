// Finds mistakes in valid JSON Schemas: contradictory or ignored keywords, and unknown required properties.
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../is-object.ts'
import { nearest } from '../nearest.ts'
import type { JsonSchema } from '../protocol.ts'
import { subschemas } from './subschemas.ts'

interface Contradiction {
  readonly why: string
  readonly path: readonly string[]
}

const TYPES = {
  number: { limits: ['minimum', 'maximum'], others: ['exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'] },
  string: { limits: ['minLength', 'maxLength'], others: ['pattern', 'contentEncoding', 'contentMediaType'] },
  array: { limits: ['minItems', 'maxItems'], others: ['items', 'prefixItems', 'uniqueItems', 'contains'] },
  object: {
    limits: ['minProperties', 'maxProperties'],
    others: ['properties', 'required', 'additionalProperties', 'patternProperties'],
  },
} as const

const OTHER_KEYWORDS = [
  ...['$schema', '$id', '$ref', '$defs', '$comment', '$anchor', 'definitions', 'type', 'enum', 'const', 'default'],
  ...['examples', 'title', 'description', 'format', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'readOnly'],
  ...['writeOnly', 'deprecated', 'propertyNames', 'minContains', 'maxContains', 'contentSchema', 'dependentRequired'],
  ...['dependentSchemas', 'dependencies', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties'],
]
const KEYWORDS: ReadonlySet<string> = new Set([
  ...Object.values(TYPES).flatMap(({ limits, others }) => [...limits, ...others]),
  ...OTHER_KEYWORDS,
])

const FORMATS: ReadonlySet<string> = new Set([
  ...['date', 'time', 'date-time', 'iso-time', 'iso-date-time', 'duration', 'email', 'idn-email', 'hostname', 'uuid'],
  ...['idn-hostname', 'ipv4', 'ipv6', 'uri', 'uri-reference', 'uri-template', 'iri', 'iri-reference', 'url', 'regex'],
  ...['json-pointer', 'relative-json-pointer', 'byte', 'binary', 'password', 'int32', 'int64', 'float', 'double'],
])

const typesOf = ({ type }: JsonSchema): readonly unknown[] => (type === undefined ? [] : [type].flat())

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

const hasType = (types: readonly unknown[], type: string) =>
  types.includes(type) || (type === 'number' && types.includes('integer'))

function sizeOf(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? [...value].length : Object.keys(Object(value)).length
}

function faultOf(value: unknown, schema: JsonSchema): string | undefined {
  const types = typesOf(schema)
  const type = typeOf(value)
  const isFraction = typeof value === 'number' && !Number.isInteger(value) && !types.includes('number')
  if (types.length > 0 && (isFraction || !hasType(types, type))) return `is not of type ${types.join(' or ')}`
  const { enum: values } = schema
  if (Array.isArray(values) && !values.some(one => isDeepStrictEqual(one, value))) return 'is not in `enum`'
  if (!Object.hasOwn(TYPES, type)) return undefined
  const [least, most] = TYPES[type as keyof typeof TYPES].limits
  const [low, high, size] = [schema[least], schema[most], sizeOf(value)]
  if (typeof low === 'number' && size < low) return `is below \`${least}\` ${low}`
  return typeof high === 'number' && size > high ? `is above \`${most}\` ${high}` : undefined
}

function* contradictionsOf(schema: JsonSchema): Generator<readonly [keyword: string, why: string]> {
  for (const keyword of ['const', 'enum', 'default', 'examples']) {
    if (!(keyword in schema)) continue
    const values = keyword === 'enum' || keyword === 'examples' ? schema[keyword] : [schema[keyword]]
    for (const value of Array.isArray(values) ? values : []) {
      const fault = faultOf(value, schema)
      if (fault === undefined) continue
      yield [keyword, `\`${keyword}\` ${JSON.stringify(value)} ${fault}`]
      break
    }
  }
  const types = typesOf(schema)
  for (const [type, { limits, others }] of Object.entries(TYPES)) {
    const [least, most] = limits
    const [low, high] = [schema[least], schema[most]]
    if (typeof low === 'number' && typeof high === 'number' && low > high) {
      yield [least, `\`${least}\` ${low} is above \`${most}\` ${high}`]
    }
    const ignored = types.length > 0 && !hasType(types, type) && [...limits, ...others].find(name => name in schema)
    if (ignored) yield [ignored, `\`${ignored}\` is ignored: it is for type ${type}`]
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
    [...contradictionsOf(schema)].map(([keyword, why]) => ({ why, path: [...path, keyword] })),
  )

interface UnknownRequired {
  readonly name: string
  readonly known: readonly string[]
  readonly isClosed: boolean
  readonly path: readonly string[]
}

const OTHER_SOURCES = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas']
const PARTIAL = new Set(['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not', 'dependentSchemas', 'contains'])

export function unknownRequired(root: JsonSchema): UnknownRequired[] {
  return [...subschemas(root)].flatMap(({ schema, path }) => {
    const { required, properties, additionalProperties } = schema
    if (!Array.isArray(required) || !isObject(properties) || isObject(additionalProperties)) return []
    if (path.some(step => PARTIAL.has(step)) || OTHER_SOURCES.some(keyword => keyword in schema)) return []
    return required
      .filter((name): name is string => typeof name === 'string' && !Object.hasOwn(properties, name))
      .map(name => ({ name, known: Object.keys(properties), isClosed: additionalProperties === false, path }))
  })
}
