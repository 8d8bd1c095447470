// Converts ajv errors to findings in words: one per location, alternatives merged, without values that can be secret.
import type { ErrorObject } from 'ajv/dist/2020.js'
import { formatPath, type Path } from '../http/errors.ts'
import { redactUrl } from '../http/request-target.ts'
import { nearest } from '../mcp/nearest.ts'
import { TOOLSET_NAME_PATTERN } from '../mcp/routes/routes.ts'
import { readErrors, type SchemaProblem, shorten, stepsOf } from '../mcp/schema/explain-errors.ts'
import {
  ENDPOINT_URL_PATTERN,
  HTTP_URL_PATTERN,
  IDENTIFIER,
  ISSUER_URL,
  KEYS_URL,
  SCOPE,
} from '../mcp/schema/schema-parts.ts'
import {
  CLAIM_PATH_PATTERN,
  DURATION_PATTERN,
  DURATION_WORDS,
  POSITIVE_DURATION_PATTERN,
  SIZE_PATTERN,
  SIZE_WORDS,
} from '../mcp/units.ts'
import { isObject } from '../mcp/wire/message.ts'
import type { JsonSchema } from '../mcp/wire/protocol.ts'
import { ROUTE_PATH_PATTERN } from './config-schema.ts'
import type { Problem } from './problems.ts'
import { branchesOf, followRef, isSchema, isSecretAt } from './walk-schema.ts'
import { isPlaceholder } from './warn-of-values.ts'

export interface Finding extends Pick<Problem, 'kind' | 'found' | 'expected' | 'suggestion'> {
  readonly path: Path
}

interface Validated {
  readonly value: unknown
  readonly schema: object
  readonly at: Path
}

/** Converts the errors of ajv with options `allErrors` and `verbose`. The findings contain no secrets. */
export function explainProblems(errors: readonly ErrorObject[], { value, schema, at }: Validated): Finding[] {
  const places = new Map<string, Finding>()
  for (const error of readErrors(errors).flatMap(problem => resolveAlternatives(problem, schema))) {
    const within = stepsOf(error.instancePath, value)
    const path = [...at, ...within]
    const known = { ...error, parentSchema: resolveAll(error.parentSchema ?? {}, schema) }
    const finding = explain(known, path, isSecretAt(schema, within) || looksSecret(path))
    const place = formatPath(finding.path)
    if (!places.has(place)) places.set(place, finding)
  }
  return omitMisspelledKeys([...places.values()])
}

/** Omits missing keys that are probably misspelled in an adjacent unknown key, so that one typo is one problem. */
function omitMisspelledKeys(findings: readonly Finding[]): Finding[] {
  const misspelled = findings.flatMap(({ kind, path, suggestion }) =>
    kind === 'unknown option' && suggestion !== undefined ? [formatPath([...path.slice(0, -1), suggestion])] : [],
  )
  return findings.filter(({ kind, path }) => kind !== 'missing' || !misspelled.includes(formatPath(path)))
}

function resolve(unresolved: JsonSchema, root: object): JsonSchema {
  const { anyOf, oneOf, ...schema } = followRef(unresolved, root)
  const branches = branchesOf({ anyOf, oneOf }, root).map(branch => resolve(branch, root))
  return branches.length === 0 ? schema : { ...schema, anyOf: branches }
}

function resolveAll(unresolved: JsonSchema, root: object): JsonSchema {
  const schema = resolve(unresolved, root)
  const properties = Object.entries(keysOf(schema)).map(([key, one]) => [key, resolve(one, root)])
  return properties.length === 0 ? schema : { ...schema, properties: Object.fromEntries(properties) }
}

function resolveAlternatives({ error, alternatives }: SchemaProblem, root: object): ErrorObject[] {
  const branch = closestBranch(error, root)
  const matching = branch ? alternatives.filter(({ error: inner }) => belongsTo(branch, inner, error, root)) : []
  return matching.length > 0 ? matching.flatMap(problem => resolveAlternatives(problem, root)) : [error]
}

const keysOf = (schema: JsonSchema): object => (isSchema(schema['properties']) ? schema['properties'] : {})

function closestBranch({ data, schema }: ErrorObject, root: object): JsonSchema | undefined {
  if (typeof data !== 'object' || data === null) return undefined
  const kind = Array.isArray(data) ? 'array' : 'object'
  const ofType = branchesOf({ anyOf: schema }, root).filter(({ type }) => [type].flat().includes(kind))
  const ofKind = ofType.filter(
    branch => !Object.entries(keysOf(branch)).some(([key, one]) => hasOtherConst(one, key, data)),
  )
  const fitting = ofKind.length > 0 ? ofKind : ofType
  const known = fitting.map(branch => Object.keys(data).filter(key => Object.hasOwn(keysOf(branch), key)).length)
  const best = fitting.filter((_, index) => known[index] === Math.max(...known))
  return best.length === 1 ? best[0] : undefined
}

const hasOtherConst = (schema: JsonSchema, key: string, data: object): boolean =>
  schema['const'] !== undefined && Object.hasOwn(data, key) && Reflect.get(data, key) !== schema['const']

const OTHER_KIND: ReadonlySet<string> = new Set(['type', 'const', 'enum'])

function belongsTo(branch: JsonSchema, inner: ErrorObject, choice: ErrorObject, root: object): boolean {
  const [key] = stepsOf(inner.instancePath.slice(choice.instancePath.length), choice.data)
  if (key !== undefined) {
    const own = Object.entries(keysOf(branch)).find(([name]) => name === key)?.[1]
    const isOfOther = inner.keyword === 'const' && own?.const === inner.data
    return !isSchema(branch['properties']) || (own !== undefined && !isOfOther)
  }
  const parent = followRef(inner.parentSchema ?? {}, root)
  return !OTHER_KIND.has(inner.keyword) && `${Object.keys(keysOf(parent))}` === `${Object.keys(keysOf(branch))}`
}

function explain(error: ErrorObject, path: Path, isSecret: boolean): Finding {
  const schema: JsonSchema = error.parentSchema ?? {}
  const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>
  switch (error.keyword) {
    case 'required':
    case 'dependentRequired':
      return explainMissing([...path, error.params['missingProperty']], properties[error.params['missingProperty']])
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name: string = error.params['additionalProperty'] ?? error.params['unevaluatedProperty']
      return explainUnknown([...path, name], (error.data as JsonSchema)[name], properties)
    }
  }
  if (error.propertyName !== undefined) return explainName([...path, error.propertyName], error.propertyName, schema)
  return {
    kind: 'wrong value',
    path,
    found: isSecret ? describeSecret(error.data) : describeValue(error.data),
    expected: DESCRIBED.has(error.keyword)
      ? describeSchema(schema) + (isSecret ? '' : listHint(error.data, schema))
      : (error.message ?? error.keyword).replace('must NOT', 'it not to').replace('must', 'it to'),
    ...(!isSecret && suggest(error.data, schema)),
  }
}

const listHint = (value: unknown, { type, items }: JsonSchema): string =>
  type === 'array' && typeof value === 'string' && isSchema(items) && (items['type'] ?? 'string') === 'string'
    ? `; write [${value
        .split(',')
        .map(entry => describeValue(entry.trim()))
        .join(', ')}]`
    : ''

/** Describes a secret. If it is missing or blank, usually its environment variable is not set. */
function describeSecret(value: unknown): string {
  const isEmpty = value === undefined || (typeof value === 'string' && value.trim() === '')
  return isEmpty ? `${describeKind(value)}; is its environment variable set?` : `${describeKind(value)} (not shown)`
}

export const DESCRIBED = new Set(
  (
    'type const enum anyOf oneOf pattern format callable minimum maximum exclusiveMinimum ' +
    'minLength maxLength minItems minProperties'
  ).split(' '),
)

const explainMissing = (path: Path, schema: JsonSchema = {}): Finding => ({
  kind: 'missing',
  path,
  found: 'nothing',
  expected: describeSchema(schema),
})

function explainUnknown(path: Path, value: unknown, properties: Readonly<Record<string, JsonSchema>>): Finding {
  const name = String(path.at(-1))
  const candidates = Object.keys(properties)
  const suggestion = nearestKey(name, candidates) ?? placeBelow(name, properties)
  const expected = candidates.length === 0 ? 'no options' : orList([...candidates].sort())
  return {
    kind: 'unknown option',
    path,
    // The value is not shown, because it can belong to a key for a secret.
    found: describeKind(value),
    expected,
    ...(suggestion !== undefined && { suggestion }),
  }
}

const SHORTEST_STEM = 4

const placeBelow = (name: string, properties: Readonly<Record<string, JsonSchema>>): string | undefined => {
  const [holder] = Object.entries(properties).find(([, schema]) => Object.hasOwn(keysOf(schema), name)) ?? []
  return holder === undefined ? undefined : `${holder}.${name}`
}

/** Finds a known key with a similar name, or a prefix of the name: `input` for `inputSchema`. */
function nearestKey(name: string, candidates: readonly string[]): string | undefined {
  const extendsKey = (long: string, short: string) => short.length >= SHORTEST_STEM && long.startsWith(short)
  return (
    nearest(name, candidates) ??
    candidates.find(
      known =>
        extendsKey(name.toLowerCase(), known.toLowerCase()) || extendsKey(known.toLowerCase(), name.toLowerCase()),
    )
  )
}

function explainName(path: Path, name: string, schema: JsonSchema): Finding {
  return {
    kind: 'wrong name',
    path,
    found: describeValue(name),
    expected: describeSchema(schema),
    ...suggest(name, schema),
  }
}

/** Finds a valid value that is similar to the given one. Returns none for a URL with hidden parts. */
function suggest(value: unknown, schema: JsonSchema): { suggestion?: string } {
  if (typeof value !== 'string' || redactUrl(value) !== value) return {}
  const suggestion = nearest(value, textsOf(schema))
  return suggestion === undefined ? {} : { suggestion }
}

function textsOf(schema: JsonSchema): string[] {
  const own = [schema['const'], schema['enum']].flat()
  const branches = [schema['anyOf'] ?? schema['oneOf'] ?? []].flat() as JsonSchema[]
  return [...own.filter(value => typeof value === 'string'), ...branches.flatMap(textsOf)]
}

const MAX_SHOWN = 60
const SECRET_KEY = /secret|pass|pasw|pwd|token|credential|private|api.?key|signing.?key/i

const PATTERN_WORDS: ReadonlyMap<unknown, string> = new Map([
  [DURATION_PATTERN, DURATION_WORDS],
  [POSITIVE_DURATION_PATTERN, `${DURATION_WORDS}, above zero`],
  [SIZE_PATTERN, SIZE_WORDS],
  [CLAIM_PATH_PATTERN, "a name, or names joined by dots such as 'realm_access.roles'"],
  [HTTP_URL_PATTERN, "an absolute http(s) URL such as 'https://mcp.acme.example'"],
  [ENDPOINT_URL_PATTERN, 'an absolute http(s) URL without a user, a password and a fragment'],
  [
    ISSUER_URL.pattern,
    'the exact https URL of one issuer (Auth0: with the final slash), not of its metadata or an endpoint',
  ],
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

const quote = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value))

const orList = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

function describeSchema(schema: JsonSchema): string {
  if (schema['callable'] === true) return 'a function, which is possible only in a .ts or .js config'
  if ('const' in schema) return quote(schema['const'])
  if (Array.isArray(schema['enum'])) return orList(schema['enum'].map(quote))
  const branches = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(branches)) {
    // The description of a function contains a subordinate clause, so it comes last.
    const sorted = branches
      .filter(isObject)
      .sort((a, b) => Number(a['callable'] === true) - Number(b['callable'] === true))
    return orList([...new Set(sorted.map(describeSchema))])
  }
  // A schema can describe its own pattern; editors show the same text.
  const words = schema['patternErrorMessage'] ?? PATTERN_WORDS.get(schema['pattern'])
  return words === undefined ? describeType(schema) : `${words}${describeShortest(schema)}`
}

function describeShortest({ pattern, minimum }: JsonSchema): string {
  if (pattern !== DURATION_PATTERN || typeof minimum !== 'number' || minimum <= 0) return ''
  return `; at least ${minimum % 1_000 === 0 ? `${minimum / 1_000}s` : `${minimum}ms`}`
}

function describeType(schema: JsonSchema): string {
  const types = [schema['type'] ?? []].flat().map(String)
  const { minLength: least } = schema
  const isFilled = typeof least === 'number' && least > 0
  const words = types.map(type =>
    type === 'string' && least === 1 ? 'a non-empty string' : (TYPE_WORDS[type] ?? type),
  )
  const length = isFilled && least > 1 && types.includes('string') ? ` of at least ${least} characters` : ''
  return `${orList(words) || 'another value'}${length || describeLimits(schema)}${describeExample(schema)}`
}

function describeLimits(schema: JsonSchema): string {
  const { minimum, maximum, exclusiveMinimum, maxLength, minItems, minProperties, properties, pattern, format } = schema
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  if (exclusiveMinimum !== undefined) return ` greater than ${exclusiveMinimum}`
  if (maximum !== undefined) return ` of at most ${maximum}`
  if (pattern !== undefined) return ` that matches ${pattern}`
  if (format !== undefined) return ` in the form of a ${format}`
  if (typeof minItems === 'number' && minItems > 0)
    return ` with at least ${minItems} ${minItems === 1 ? 'entry' : 'entries'}`
  if (minProperties !== undefined && isObject(properties)) {
    return ` with at least ${minProperties} of ${orList(Object.keys(properties))}`
  }
  return maxLength === undefined ? '' : ` of at most ${maxLength} characters`
}

function describeExample(schema: JsonSchema): string {
  const example = Array.isArray(schema['examples']) ? schema['examples'][0] : undefined
  return example === undefined ? '' : ` such as ${quote(example)}`
}

export function describeKind(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty object' : 'an object'
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'string' && value.trim() === '') return value === '' ? 'an empty string' : 'a blank string'
  return `a ${typeof value}`
}

/** True if a key name on the path is typical of a secret, for keys without a schema. */
const looksSecret = (path: Path): boolean => path.some(key => SECRET_KEY.test(String(key)))

export const isSecretPath = (schema: object, path: Path): boolean => isSecretAt(schema, path) || looksSecret(path)

function describeValue(value: unknown): string {
  const note = isPlaceholder(value) ? ', a placeholder that is not replaced' : ''
  if (typeof value === 'string') return `${JSON.stringify(shorten(redactUrl(value), MAX_SHOWN))}${note}`
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : describeKind(value)
}
