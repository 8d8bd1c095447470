// Compares two versions of a JSON Schema keyword by keyword, and rates whether the newer one accepts less, more or
// both.
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../core/mcp/wire/message.ts'
import type { JsonObject } from '../../core/mcp/wire/protocol.ts'

/**
 * Effect on accepted values: `less`, `more` or both (`other`); `unknown`: not judged. `words`: only text differs. `same`: a
 * property was declared.
 */
export type Verdict = 'less' | 'more' | 'other' | 'unknown' | 'words' | 'same'

interface SchemaChange {
  readonly path: string
  readonly what: string
  readonly verdict: Verdict
  readonly before?: unknown
  readonly after?: unknown
}

const MAX_SHOWN = 160

export const isSame = (one: unknown, other: unknown): boolean => Object.is(one, other) || isDeepStrictEqual(one, other)

export const truncate = (text: string, max = MAX_SHOWN): string =>
  text.length > max ? `${text.slice(0, max)}… (and ${text.length - max} more characters)` : text

const isLong = (value: unknown): boolean => (JSON.stringify(value) ?? '').length > MAX_SHOWN

export const showBoth = (before: unknown, after: unknown): { before?: unknown; after?: unknown } =>
  isLong(before) || isLong(after) ? { before, after } : {}

export const show = (value: unknown): string => truncate(JSON.stringify(value) ?? 'none')

export const unionKeys = (one: object, other: object): string[] => [
  ...new Set([...Object.keys(one), ...Object.keys(other)]),
]

export function listDifference(was: readonly string[], now: readonly string[]): { removed: string[]; added: string[] } {
  const [known, left] = [new Set(was), new Set(now)]
  return { removed: was.filter(one => !left.has(one)), added: now.filter(one => !known.has(one)) }
}

type Compare = (before: JsonObject, after: JsonObject, path: string) => SchemaChange[]

const change = (path: string, what: string, verdict: Verdict, sides: object = {}): SchemaChange => ({
  path,
  what,
  verdict,
  ...sides,
})

const verdictOf = (less: boolean, more: boolean): Verdict =>
  less && more ? 'other' : less ? 'less' : more ? 'more' : 'same'

const pathStep = (name: string) => (/^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${show(name)}]`)

const toChange = (path: string, keyword: string, before: unknown, after: unknown, verdict: Verdict) =>
  change(path, `${keyword}: ${show(before)} became ${show(after)}`, verdict, showBoth(before, after))

/** Removes strings, which validate nothing, except from values. */
function withoutDescriptions(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutDescriptions)
  if (!isObject(schema)) return schema
  const entries = Object.entries(schema).filter(([name, value]) => !(TEXTS.includes(name) && typeof value === 'string'))
  const isValue = (name: string) => name === 'enum' || name === 'const' || name === 'default'
  return Object.fromEntries(entries.map(([name, value]) => [name, isValue(name) ? value : withoutDescriptions(value)]))
}

const unjudgedChange = (before: unknown, after: unknown, path: string) =>
  change(path, 'changed, with unknown effect on clients', 'unknown', { before, after })

const compareAny =
  (keyword: string): Compare =>
  ({ [keyword]: before }, { [keyword]: after }, path) => {
    if (isSame(before, after)) return []
    if (isSame(withoutDescriptions(before), withoutDescriptions(after)))
      return [change(path, `${keyword} changed`, 'words', { before, after })]
    return [change(path, `${keyword} changed, with unknown effect on clients`, 'unknown', { before, after })]
  }

const TEXTS = ['title', 'description', 'examples', 'default', 'deprecated', '$comment', 'readOnly', 'writeOnly']

const compareDescription =
  (keyword: string): Compare =>
  ({ [keyword]: before }, { [keyword]: after }, path) =>
    isSame(before, after) ? [] : [change(path, `${keyword} changed`, 'words', { before, after })]

/** `sign` 1: a higher value accepts less. `absent`: the value that accepts everything. */
function compareBound(keyword: string, sign: 1 | -1, absent: number | boolean): Compare {
  return (before, after, path) => {
    const [was, now] = [before[keyword] ?? absent, after[keyword] ?? absent]
    if (isSame(was, now)) return []
    if (typeof was !== typeof absent || typeof now !== typeof absent) return compareAny(keyword)(before, after, path)
    const verdict = (Number(now) - Number(was)) * sign > 0 ? 'less' : 'more'
    return [toChange(path, keyword, before[keyword], after[keyword], verdict)]
  }
}

const compareRestriction =
  (keyword: string): Compare =>
  ({ [keyword]: was }, { [keyword]: now }, path) => {
    if (isSame(was, now)) return []
    return [toChange(path, keyword, was, now, was === undefined ? 'less' : now === undefined ? 'more' : 'unknown')]
  }

const compareGrowth =
  (keyword: string, verdict: Verdict): Compare =>
  (before, after, path) => {
    const [was = {}, now = {}]: unknown[] = [before[keyword], after[keyword]]
    if (isSame(was, now)) return []
    const isList = Array.isArray(was) && Array.isArray(now)
    const isGrown =
      (isList || (verdict === 'same' && isObject(was) && isObject(now))) &&
      Object.entries(was).every(([name, schema]) => isSame(schema, Reflect.get(now, name)))
    return isGrown
      ? [change(path, `${keyword} has more members`, verdict, { before: was, after: now })]
      : compareAny(keyword)(before, after, path)
  }

const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'string']

const compareTypes: Compare = (before, after, path) => {
  const read = ({ type }: JsonObject): unknown[] => (type === undefined ? TYPES : [type].flat())
  const [was, now] = [read(before), read(after)]
  const has = (types: unknown[], type: unknown) =>
    types.includes(type) || (type === 'integer' && types.includes('number'))
  const verdict = verdictOf(!was.every(type => has(now, type)), !now.every(type => has(was, type)))
  const text = ({ type }: JsonObject) => (type === undefined ? 'any type' : [type].flat().join(' or '))
  return verdict === 'same' ? [] : [change(path, `type: ${text(before)} became ${text(after)}`, verdict)]
}

function valuesOf({ const: value, enum: values }: JsonObject): string[] | undefined {
  if (value !== undefined) return [JSON.stringify(value)]
  return Array.isArray(values) ? values.map(one => JSON.stringify(one)) : undefined
}

const compareValues: Compare = (before, after, path) => {
  if (isSame([before['enum'], before['const']], [after['enum'], after['const']])) return []
  if ([before, after].some(schema => schema['enum'] !== undefined && schema['const'] !== undefined))
    return [unjudgedChange(before, after, path)]
  const [was, now] = [valuesOf(before), valuesOf(after)]
  if (!was || !now) {
    const what = now ? `only these values now: ${truncate(now.join(', '))}` : 'any value now'
    return [change(path, what, now ? 'less' : 'more', showBoth(was, now))]
  }
  const { removed, added } = listDifference(was, now)
  if (removed.length + added.length === 0) return [change(path, 'values: in another order', 'words')]
  const list = (label: string, values: string[]) =>
    values.length === 0 ? [] : [`${label} ${truncate(values.join(', '))}`]
  const what = `values: ${[...list('no longer', removed), ...list('new', added)].join('; ')}`
  // Short plain values cannot carry instructions for models. Other values are shown completely.
  const isPlain = added.every(value => /^"?[\w.-]{0,64}"?$/.test(value))
  const sides = isPlain ? showBoth(removed, added) : { before: removed, after: added }
  return [change(path, what, verdictOf(removed.length > 0, added.length > 0), sides)]
}

const compareRequired: Compare = (before, after, path) => {
  const read = ({ required }: JsonObject) => (Array.isArray(required) ? required.map(String) : [])
  const { removed, added } = listDifference(read(before), read(after))
  return [
    ...added.map(name => change(path + pathStep(name), 'is required now', 'less')),
    ...removed.map(name => change(path + pathStep(name), 'is optional now', 'more')),
  ]
}

const isAny = (schema: unknown) => schema === true || (isObject(schema) && Object.keys(schema).length === 0)

/** Compares a property that only one schema declares. `rest`: the schema that the other one applies to the property. */
function compareNamed(
  kind: 'added' | 'removed',
  name: string,
  schema: unknown,
  rest: unknown,
  path: string,
): SchemaChange[] {
  const after = kind === 'added' ? { after: { [name]: schema } } : {}
  if (rest === false) return [change(path, kind, kind === 'added' ? 'more' : 'less', after)]
  if (isAny(rest) && kind === 'added') return [change(path, kind, 'same', after)]
  if (isAny(rest)) return [change(path, 'removed: accepted and ignored if a client still sends it', 'unknown')]
  return [
    change(path, kind, 'same', after),
    ...(kind === 'added' ? walk(rest, schema, path) : walk(schema, rest, path)),
  ]
}

const compareProperties: Compare = (before, after, path) => {
  const schemasIn = (value: unknown): JsonObject => (isObject(value) ? (value as JsonObject) : {})
  const [was, now] = [schemasIn(before['properties']), schemasIn(after['properties'])]
  const { additionalProperties: restBefore = true } = before
  const { additionalProperties: restAfter = true } = after
  const names = unionKeys(was, now)
  const markOf = createNameMarks(names)
  const found = names.flatMap(name => {
    const at = path + pathStep(name)
    const isOld = Object.hasOwn(was, name)
    if (isOld && Object.hasOwn(now, name)) return walk(was[name], now[name], at)
    if (isOld) return compareNamed('removed', name, was[name], restAfter, at)
    const mark = markOf(name)
    const marked = mark === '' ? [] : [change(at, mark, 'words')]
    return [...marked, ...compareNamed('added', name, now[name], restBefore, at)]
  })
  if ((restBefore === false) === (restAfter === false)) return [...found, ...walk(restBefore, restAfter, `${path}.*`)]
  const rest = restAfter === false ? 'other properties are refused now' : 'other properties are accepted now'
  return [...found, restAfter === false ? change(path, rest, 'less') : change(path, rest, 'more', { after: restAfter })]
}

const compareItems: Compare = (before, after, path) => {
  const { items: was = true } = before
  const { items: now = true } = after
  return Array.isArray(was) || Array.isArray(now)
    ? compareAny('items')(before, after, path)
    : walk(was, now, `${path}[]`)
}

const table = (keywords: readonly string[], compare: (keyword: string) => Compare) =>
  Object.fromEntries(keywords.map(keyword => [keyword, compare(keyword)]))

const RULES: Readonly<Record<string, Compare>> = {
  ...table(TEXTS, compareDescription),
  ...table(['minLength', 'minItems', 'minProperties'], keyword => compareBound(keyword, 1, 0)),
  ...table(['minimum', 'exclusiveMinimum'], keyword => compareBound(keyword, 1, -Infinity)),
  ...table(['maxLength', 'maxItems', 'maxProperties', 'maximum', 'exclusiveMaximum'], keyword =>
    compareBound(keyword, -1, Infinity),
  ),
  ...table(['pattern', 'format', 'multipleOf', 'propertyNames'], compareRestriction),
  ...table(['$defs', 'definitions'], keyword => compareGrowth(keyword, 'same')),
  uniqueItems: compareBound('uniqueItems', 1, false),
  anyOf: compareGrowth('anyOf', 'more'),
  type: compareTypes,
  enum: compareValues,
  required: compareRequired,
  properties: compareProperties,
  items: compareItems,
}

const areTexts = (value: unknown) => Array.isArray(value) && value.every(one => typeof one === 'string')

const FORMS: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: value => areTexts([value].flat()),
  enum: Array.isArray,
  required: areTexts,
  properties: isObject,
}

const isWellFormed = (schema: unknown): schema is JsonObject =>
  isObject(schema) &&
  Object.entries(FORMS).every(([keyword, fits]) => schema[keyword] === undefined || fits(schema[keyword]))

const READ_WITH: Readonly<Record<string, string>> = { const: 'enum', additionalProperties: 'properties' }

function walk(before: unknown, after: unknown, path: string): SchemaChange[] {
  if (isSame(before, after)) return []
  const [was, now] = [before, after].map(schema => (schema === true ? {} : schema))
  if (was === false || now === false)
    return [was === false ? change(path, 'is accepted now', 'more', { after }) : change(path, 'is refused now', 'less')]
  if (!isWellFormed(was) || !isWellFormed(now)) return [unjudgedChange(before, after, path)]
  const keywords = unionKeys(was, now).map(name => (Object.hasOwn(READ_WITH, name) ? String(READ_WITH[name]) : name))
  return [...new Set(keywords)].flatMap(keyword => {
    const rule = Object.hasOwn(RULES, keyword) ? RULES[keyword] : undefined
    return (rule ?? compareAny(keyword))(was, now, path)
  })
}

/** True if parts of the schema depend on each other: references, patterns, unevaluated keywords. */
function hasCombinators(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasCombinators)
  if (!isObject(schema)) return false
  return Object.entries(schema).some(([keyword, value]) =>
    keyword === '$ref' && typeof value === 'string'
      ? !/^#\/(?:\$defs|definitions)\/[^/]*$/.test(value)
      : /^(?:unevaluated\w+|patternProperties|\$(?:dynamic|recursive)Ref)$/.test(keyword) || hasCombinators(value),
  )
}

export function compareSchemas(before: JsonObject, after: JsonObject): SchemaChange[] {
  const found = walk(before, after, '')
  const isJudged =
    found.every(({ verdict }) => verdict !== 'unknown') && found.some(({ verdict }) => verdict !== 'words')
  if (!isJudged || !(hasCombinators(before) || hasCombinators(after))) return found
  return [
    ...found,
    change('', 'other parts of the schema depend on the change, with unknown effect on clients', 'unknown'),
  ]
}

/** A canonical form for names that look alike in most fonts. */
const normalizeLook = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/[1I|]/g, 'l')
    .replace(/[0O]/g, 'o')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w')

/** Returns a warning for a suspicious new name. `others`: the names next to it. */
export function createNameMarks(others: Iterable<string>): (name: string) => string {
  const byLook = new Map<string, string[]>()
  for (const other of others) {
    const look = normalizeLook(other)
    byLook.set(look, [...(byLook.get(look) ?? []).slice(0, 1), other])
  }
  return name => {
    const twin = byLook.get(normalizeLook(name))?.find(other => other !== name)
    return [
      ...(/[^ -~]/.test(name) ? ['its name has characters outside of ASCII'] : []),
      ...(twin === undefined ? [] : [`its name looks like ${JSON.stringify(twin)}`]),
    ].join(', and ')
  }
}
