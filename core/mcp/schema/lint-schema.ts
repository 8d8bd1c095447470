// Finds mistakes in valid JSON Schemas: misspelled keywords and formats, and unknown required properties.
import { isObject } from '../is-object.ts'
import { nearest } from '../nearest.ts'
import type { JsonSchema } from '../protocol.ts'
import { subschemas } from './subschemas.ts'

interface Misspelling {
  readonly why: string
  readonly path: readonly string[]
}

const KEYWORDS: ReadonlySet<string> = new Set([
  ...['$schema', '$id', '$ref', '$defs', '$comment', '$anchor', 'definitions', 'type', 'enum', 'const', 'default'],
  ...['examples', 'title', 'description', 'format', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'readOnly'],
  ...['writeOnly', 'deprecated', 'propertyNames', 'minContains', 'maxContains', 'contentSchema', 'dependentRequired'],
  ...['dependentSchemas', 'dependencies', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties', 'items'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'pattern'],
  ...['contentEncoding', 'contentMediaType', 'minItems', 'maxItems', 'prefixItems', 'uniqueItems', 'contains'],
  ...['minProperties', 'maxProperties', 'properties', 'required', 'additionalProperties', 'patternProperties'],
])

const FORMATS: ReadonlySet<string> = new Set([
  ...['date', 'time', 'date-time', 'iso-time', 'iso-date-time', 'duration', 'email', 'idn-email', 'hostname', 'uuid'],
  ...['idn-hostname', 'ipv4', 'ipv6', 'uri', 'uri-reference', 'uri-template', 'iri', 'iri-reference', 'url', 'regex'],
  ...['json-pointer', 'relative-json-pointer', 'byte', 'binary', 'password', 'int32', 'int64', 'float', 'double'],
])

export const misspellingsIn = (root: JsonSchema): Misspelling[] =>
  [...subschemas(root)].flatMap(({ schema, path }) => {
    const { format } = schema
    const near = typeof format === 'string' && !FORMATS.has(format) ? nearest(format, FORMATS) : undefined
    const keywords = Object.keys(schema).flatMap(name => {
      const meant = KEYWORDS.has(name) ? undefined : nearest(name, KEYWORDS)
      return meant === undefined
        ? []
        : [{ why: `\`${name}\` is ignored; did you mean \`${meant}\`?`, path: [...path, name] }]
    })
    if (near === undefined) return keywords
    const why = `\`format\` "${format}" is ignored; did you mean "${near}"?`
    return [{ why, path: [...path, 'format'] }, ...keywords]
  })

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
