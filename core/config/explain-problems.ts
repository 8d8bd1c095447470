// Turns ajv's errors into findings: one a place, alternatives merged, in words.
// Used by check-config.ts, which adds file and line.
import type { ErrorObject } from 'ajv/dist/2020.js'
import { shownUrl } from '../kernel/shown-url.ts'
import type { JsonSchema } from '../mcp/protocol.ts'
import { describeKind, describeSchema, describeValue, orList, soundsSecret } from './describe.ts'
import { nearest } from './nearest.ts'
import type { Path } from './position.ts'
import { formatPath } from './position.ts'
import type { Problem } from './problems.ts'
import { isSecretAt } from './secret-keys.ts'

export interface Finding extends Pick<Problem, 'kind' | 'found' | 'expected' | 'suggestion'> {
  readonly path: Path
}

/** What was validated against which schema, and its place in the config. */
export interface Validated {
  readonly value: unknown
  readonly schema: object
  readonly at: Path
}

/** ajv must have run with `allErrors` and `verbose`. Nothing that is secret is in what this says. */
export function explainProblems(errors: readonly ErrorObject[], { value, schema, at }: Validated): Finding[] {
  const places = new Map<string, Finding>()
  for (const error of settleAlternatives(errors)) {
    // Its cause is an error of its own, which knows the name.
    if (error.keyword === 'propertyNames') continue
    const within = pathOf(error.instancePath, value)
    const path = [...at, ...within]
    const finding = explain(error, path, isSecretAt(schema, within) || soundsSecret(path))
    const place = formatPath(finding.path)
    if (!places.has(place)) places.set(place, finding)
  }
  return [...places.values()]
}

/** The path of a JSON Pointer; whether a step is an index depends on the value. */
function pathOf(pointer: string, root: unknown): (string | number)[] {
  let value = root
  return pointer
    .split('/')
    .slice(1)
    .map(step => {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
      const place = Array.isArray(value) ? Number(key) : key
      value = (value as Record<string | number, unknown> | undefined)?.[place]
      return place
    })
}

/** Of every `anyOf` that failed, keeps the errors of the branch that was meant, or itself where that is not clear. */
function settleAlternatives(errors: readonly ErrorObject[]): ErrorObject[] {
  const alternatives = errors
    .filter(error => error.keyword === 'anyOf' || error.keyword === 'oneOf')
    .sort((one, other) => one.schemaPath.length - other.schemaPath.length)
  let left = [...errors]
  for (const alternative of alternatives) {
    if (!left.includes(alternative)) continue
    const branch = meantBranch(alternative)
    const isMeant = (error: ErrorObject) => error.schemaPath.startsWith(`${alternative.schemaPath}/${branch}/`)
    const inside = left.filter(error => isUnder(error, alternative))
    const kept = branch === undefined ? [] : inside.filter(isMeant)
    left = left.filter(error => (error === alternative ? kept.length === 0 : !inside.includes(error) || isMeant(error)))
  }
  return left
}

const isUnder = (error: ErrorObject, alternative: ErrorObject): boolean =>
  error.schemaPath.startsWith(`${alternative.schemaPath}/`) &&
  `${error.instancePath}/`.startsWith(`${alternative.instancePath}/`)

/** The index of the only branch for values of this kind; for text and numbers all branches are worth naming. */
function meantBranch({ data, schema }: ErrorObject): number | undefined {
  if (typeof data !== 'object' || data === null || !Array.isArray(schema)) return undefined
  const kind = Array.isArray(data) ? 'array' : 'object'
  const fitting = schema.flatMap((branch: JsonSchema, index) => ([branch['type']].flat().includes(kind) ? [index] : []))
  return fitting.length === 1 ? fitting[0] : undefined
}

function explain(error: ErrorObject, path: Path, isSecret: boolean): Finding {
  const schema: JsonSchema = error.parentSchema ?? {}
  const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>
  switch (error.keyword) {
    case 'required':
      return explainMissing([...path, error.params['missingProperty']], properties[error.params['missingProperty']])
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name: string = error.params['additionalProperty'] ?? error.params['unevaluatedProperty']
      return explainUnknown([...path, name], (error.data as JsonSchema)[name], Object.keys(properties))
    }
  }
  if (error.propertyName !== undefined) return explainName([...path, error.propertyName], error.propertyName, schema)
  return {
    kind: 'wrong value',
    path,
    found: isSecret ? `${describeKind(error.data)} (not shown)` : describeValue(error.data),
    expected: DESCRIBED.has(error.keyword)
      ? describeSchema(schema)
      : (error.message ?? error.keyword).replace('must ', 'it to '),
    ...(!isSecret && suggest(error.data, schema)),
  }
}

/** Keywords that `describeSchema` puts into words. */
const DESCRIBED = new Set(
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

function explainUnknown(path: Path, value: unknown, candidates: readonly string[]): Finding {
  const suggestion = nearestKey(String(path.at(-1)), candidates)
  const expected = candidates.length === 0 ? 'no options' : orList([...candidates].sort())
  return {
    kind: 'unknown option',
    path,
    // What it holds does not matter, and may be meant for a key that holds a secret.
    found: describeKind(value),
    expected,
    ...(suggestion !== undefined && { suggestion }),
  }
}

const SHORTEST_STEM = 4

/** The known key that is nearly the same, or that the other goes on from: `input` for `inputSchema`. */
function nearestKey(name: string, candidates: readonly string[]): string | undefined {
  const goesOn = (long: string, short: string) => short.length >= SHORTEST_STEM && long.startsWith(short)
  return (
    nearest(name, candidates) ??
    candidates.find(
      known => goesOn(name.toLowerCase(), known.toLowerCase()) || goesOn(known.toLowerCase(), name.toLowerCase()),
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

/** A value that fits and is nearly what was written; none for a URL of which a part is not shown. */
function suggest(value: unknown, schema: JsonSchema): { suggestion?: string } {
  if (typeof value !== 'string' || shownUrl(value) !== value) return {}
  const allowed = textsOf(schema)
  const close = allowed.length > 0 ? nearest(value, allowed) : undefined
  const suggestion = close ?? respelled(value, schema)
  return suggestion === undefined ? {} : { suggestion }
}

/** The texts that a schema lists, in its branches too. */
function textsOf(schema: JsonSchema): string[] {
  const own = [schema['const'], schema['enum']].flat()
  const branches = [schema['anyOf'] ?? schema['oneOf'] ?? []].flat() as JsonSchema[]
  return [...own.filter(value => typeof value === 'string'), ...branches.flatMap(textsOf)]
}

/** The value in the spelling that the schema's pattern wants: without spaces, in lower case, behind a slash. */
function respelled(value: string, schema: JsonSchema): string | undefined {
  const patterns = [schema, ...([schema['anyOf'] ?? []].flat() as JsonSchema[])].flatMap(({ pattern }) =>
    typeof pattern === 'string' ? [new RegExp(pattern)] : [],
  )
  const spellings = [value.replace(/\s/g, '').toLowerCase(), `/${value}`]
  return spellings.find(spelling => patterns.some(pattern => pattern.test(spelling)))
}
