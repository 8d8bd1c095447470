// Words for schemas and values: the "expected" and the "found" of a problem.
// For explain-problems.ts. A value that may be a secret is never put into words.

import type { Path } from '../http/errors.ts'
import { shownUrl } from '../http/request-target.ts'
import type { JsonSchema } from '../mcp/protocol.ts'
import {
  CLAIM_PATH_PATTERN,
  DURATION_PATTERN,
  DURATION_WORDS,
  POSITIVE_DURATION_PATTERN,
  SIZE_PATTERN,
  SIZE_WORDS,
} from '../mcp/units.ts'
import { ROUTE_PATH_PATTERN, TOOLSET_NAME_PATTERN } from './config-schema.ts'
import { ENDPOINT_URL_PATTERN, HTTP_URL_PATTERN, IDENTIFIER, ISSUER_URL, KEYS_URL, SCOPE } from './schema-parts.ts'

const LONGEST = 60
const SECRET_KEY = /secret|pass|pasw|pwd|token|credential|private|api.?key|signing.?key/i

const PATTERN_WORDS: ReadonlyMap<unknown, string> = new Map([
  [DURATION_PATTERN, DURATION_WORDS],
  [POSITIVE_DURATION_PATTERN, `${DURATION_WORDS}, above zero`],
  [SIZE_PATTERN, SIZE_WORDS],
  [CLAIM_PATH_PATTERN, "a name, or names joined by dots such as 'realm_access.roles'"],
  [HTTP_URL_PATTERN, "an absolute http(s) URL such as 'https://mcp.acme.example'"],
  [ENDPOINT_URL_PATTERN, 'an absolute http(s) URL without a user, a password and a fragment'],
  [ISSUER_URL.pattern, 'the exact URL of one issuer, not the URL of its metadata or of an endpoint'],
  [KEYS_URL.pattern, 'the URL of a key set, not of a discovery document'],
  [IDENTIFIER.pattern, 'an identifier, not the URL of a metadata document'],
  [SCOPE.pattern, 'one scope without spaces; write several as a list'],
  [ROUTE_PATH_PATTERN, "a path that starts with '/'"],
  [TOOLSET_NAME_PATTERN, "a name without '/' that does not start with ':'"],
])

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'null',
}

const isObject = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null

const quote = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value))

/** `a, b or c`. */
export const orList = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

/** What a schema accepts, in a few words. */
export function describeSchema(schema: JsonSchema): string {
  if (schema['callable'] === true) return 'a function, which only a .ts or .js config can hold'
  if ('const' in schema) return quote(schema['const'])
  if (Array.isArray(schema['enum'])) return orList(schema['enum'].map(quote))
  const branches = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(branches)) {
    const words = branches.filter(isObject).map(describeSchema)
    return orList([...new Set(words)])
  }
  // A schema may say itself what its pattern means; editors show the same words.
  const words = schema['patternErrorMessage'] ?? PATTERN_WORDS.get(schema['pattern'])
  return words === undefined ? describeType(schema) : `${words}${describeShortest(schema)}`
}

/** Of a duration with a least one, which its words do not say. */
function describeShortest({ pattern, minimum }: JsonSchema): string {
  if (pattern !== DURATION_PATTERN || typeof minimum !== 'number' || minimum <= 0) return ''
  return `; at least ${minimum % 1_000 === 0 ? `${minimum / 1_000}s` : `${minimum}ms`}`
}

function describeType(schema: JsonSchema): string {
  const types = [schema['type'] ?? []].flat().map(String)
  const isFilled = typeof schema['minLength'] === 'number' && schema['minLength'] > 0
  const words = types.map(type => (type === 'string' && isFilled ? 'a non-empty string' : (TYPE_WORDS[type] ?? type)))
  return `${orList(words) || 'another value'}${describeLimits(schema)}${describeExample(schema)}`
}

function describeLimits(schema: JsonSchema): string {
  const { minimum, maximum, exclusiveMinimum, maxLength, minItems, minProperties, properties, pattern, format } = schema
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  if (exclusiveMinimum !== undefined) return ` greater than ${exclusiveMinimum}`
  if (maximum !== undefined) return ` of at most ${maximum}`
  if (pattern !== undefined) return ` that matches ${pattern}`
  if (format !== undefined) return ` in the form of a ${format}`
  if (typeof minItems === 'number' && minItems > 0) return ` of at least ${minItems}`
  if (minProperties !== undefined && isObject(properties)) {
    return ` with at least ${minProperties} of ${orList(Object.keys(properties))}`
  }
  return maxLength === undefined ? '' : ` of at most ${maxLength} characters`
}

function describeExample(schema: JsonSchema): string {
  const example = Array.isArray(schema['examples']) ? schema['examples'][0] : undefined
  return example === undefined ? '' : ` such as ${quote(example)}`
}

/** A value's kind in a few words, and nothing of the value. */
export function describeKind(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty object' : 'an object'
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'string' && value.trim() === '') return value === '' ? 'an empty string' : 'a blank string'
  return `a ${typeof value}`
}

/** Whether a value may be a secret by the names on the way to it: for keys that no schema describes. */
export const soundsSecret = (path: Path): boolean => path.some(key => SECRET_KEY.test(String(key)))

/** A value in a few words: scalars as written but shortened, the rest by kind. Not for what is secret. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shorten(shownUrl(value)))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : describeKind(value)
}

const shorten = (value: string): string => (value.length > LONGEST ? `${value.slice(0, LONGEST - 1)}…` : value)
