// Two versions of a JSON Schema: whether the newer accepts less, more or both, keyword by keyword. What cannot be judged so is
// said to be unknown, never the same.
import { isObject } from '../../core/mcp/is-object.ts'
import type { JsonObject } from '../../core/mcp/protocol.ts'
import { createNameMarks } from './look-alike.ts'
import { cut, isSame, shown, sidesOf, type Verdict } from './verdict.ts'

/** One difference of two schemas. */
export interface SchemaChange {
  /** Such as `.address.lines[]`; empty at the top. */
  readonly path: string
  readonly what: string
  readonly verdict: Verdict
  /** Of what `what` cannot show whole. */
  readonly before?: unknown
  readonly after?: unknown
}

type Compare = (before: JsonObject, after: JsonObject, path: string) => SchemaChange[]

const is = (path: string, what: string, verdict: Verdict, sides: object = {}): SchemaChange => ({
  path,
  what,
  verdict,
  ...sides,
})

/** One verdict of two that hold at once. */
const both = (less: boolean, more: boolean): Verdict =>
  less && more ? 'other' : less ? 'less' : more ? 'more' : 'same'

const isStructural = ({ verdict }: SchemaChange) => verdict !== 'words' && verdict !== 'same'

/** A step to a property, as one would write it. */
export const step = (name: string) => (/^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${shown(name)}]`)

/** What for programs changes nothing. */
export const WORDS = ['title', 'description', 'examples', 'default', 'deprecated', '$comment', 'readOnly', 'writeOnly']

const compareWords =
  (keyword: string): Compare =>
  (before, after, path) =>
    isSame(before[keyword], after[keyword])
      ? []
      : [is(path, `${keyword} changed`, 'words', { before: before[keyword], after: after[keyword] })]

const unknown =
  (keyword: string): Compare =>
  (before, after, path) =>
    isSame(before[keyword], after[keyword])
      ? []
      : [
          is(path, `${keyword} changed, which is not judged`, 'unknown', {
            before: before[keyword],
            after: after[keyword],
          }),
        ]

/** `sign` 1: a higher bound accepts less. `none`: what stands for no bound. */
function compareBound(keyword: string, sign: 1 | -1, none: number): Compare {
  const read = (value: unknown) => (value === undefined ? none : value)
  return (before, after, path) => {
    const [was, now] = [read(before[keyword]), read(after[keyword])]
    if (isSame(was, now)) return []
    if (typeof was !== 'number' || typeof now !== 'number') return unknown(keyword)(before, after, path)
    const what = `${keyword}: ${shown(before[keyword])} became ${shown(after[keyword])}`
    return [is(path, what, (now - was) * sign > 0 ? 'less' : 'more')]
  }
}

const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'string']

const compareTypes: Compare = (before, after, path) => {
  const read = ({ type }: JsonObject): unknown[] => (type === undefined ? TYPES : [type].flat())
  const [was, now] = [read(before), read(after)]
  const has = (types: unknown[], type: unknown) =>
    types.includes(type) || (type === 'integer' && types.includes('number'))
  const less = was.some(type => !has(now, type))
  const more = now.some(type => !has(was, type))
  if (!less && !more) return []
  const say = ({ type }: JsonObject) => (type === undefined ? 'any type' : [type].flat().join(' or '))
  return [is(path, `type: ${say(before)} became ${say(after)}`, both(less, more))]
}

/** The only values that there are, as text; undefined: all others, too. */
function valuesOf(schema: JsonObject): string[] | undefined {
  if (schema['const'] !== undefined) return [JSON.stringify(schema['const'])]
  return Array.isArray(schema['enum']) ? schema['enum'].map(value => JSON.stringify(value)) : undefined
}

const compareValues: Compare = (before, after, path) => {
  if (isSame([before['enum'], before['const']], [after['enum'], after['const']])) return []
  const hasBoth = [before, after].some(schema => schema['enum'] !== undefined && schema['const'] !== undefined)
  const [was, now] = [valuesOf(before), valuesOf(after)]
  if (hasBoth) return [is(path, 'enum and const changed, which is not judged', 'unknown')]
  if (!was || !now) {
    const what = now ? `only these values now: ${cut(now.join(', '))}` : 'any value now, not only those of a list'
    return [is(path, what, now ? 'less' : 'more', sidesOf(was, now))]
  }
  const [known, left] = [new Set(was), new Set(now)]
  const gone = was.filter(value => !left.has(value))
  const added = now.filter(value => !known.has(value))
  if (gone.length + added.length === 0) return [is(path, 'values: in another order', 'words')]
  const list = (said: string, values: string[]) => (values.length === 0 ? [] : [`${said} ${cut(values.join(', '))}`])
  const what = [...list('no longer', gone), ...list('new', added)].join('; ')
  const sides = sidesOf(gone, added)
  return [is(path, `values: ${what}`, both(gone.length > 0, added.length > 0), sides)]
}

/** A keyword that only restricts: to have it is less than not to have it; one in the place of another is not judged. */
const compareRestriction =
  (keyword: string): Compare =>
  (before, after, path) => {
    const [was, now] = [before[keyword], after[keyword]]
    if (isSame(was, now)) return []
    const sides = sidesOf(was, now)
    if (was === undefined) return [is(path, `${keyword} ${shown(now)} is asked now`, 'less', sides)]
    if (now === undefined) return [is(path, `${keyword} ${shown(was)} is no longer asked`, 'more', sides)]
    return [is(path, `${keyword}: ${shown(was)} became ${shown(now)}, which is not judged`, 'unknown', sides)]
  }

const compareUnique: Compare = (before, after, path) => {
  const [was, now] = [before['uniqueItems'] === true, after['uniqueItems'] === true]
  if (was === now) return []
  return [is(path, now ? 'entries must differ now' : 'entries may be the same now', now ? 'less' : 'more')]
}

const compareRequired: Compare = (before, after, path) => {
  const read = ({ required }: JsonObject) => (Array.isArray(required) ? required.map(String) : [])
  const [was, now] = [new Set(read(before)), new Set(read(after))]
  return [
    ...[...now].filter(name => !was.has(name)).map(name => is(path + step(name), 'is required now', 'less')),
    ...[...was].filter(name => !now.has(name)).map(name => is(path + step(name), 'is optional now', 'more')),
  ]
}

const schemasIn = (value: unknown): Readonly<JsonObject> => (isObject(value) ? value : {})
const isOpen = (rest: unknown) => rest === true || (isObject(rest) && Object.keys(rest).length === 0)

/** A property that only one of the two names: what the other does with it is in its rest. */
function compareNamed(kind: 'added' | 'removed', schema: unknown, rest: unknown, path: string): SchemaChange[] {
  if (rest === false) {
    return [is(path, kind, kind === 'added' ? 'more' : 'less')]
  }
  if (isOpen(rest)) {
    // Nobody gives what nobody told them of: where anything was let in, a new name takes nothing away.
    if (kind === 'added') return [is(path, kind, 'same')]
    return [is(path, 'removed: whoever still has it is not refused, and not heard', 'unknown')]
  }
  return [is(path, kind, 'same'), ...(kind === 'added' ? walk(rest, schema, path) : walk(schema, rest, path))]
}

const compareProperties: Compare = (before, after, path) => {
  const [was, now] = [schemasIn(before['properties']), schemasIn(after['properties'])]
  const rest = ({ additionalProperties = true }: JsonObject) => additionalProperties
  const found: SchemaChange[] = []
  const names = new Set([...Object.keys(was), ...Object.keys(now)])
  const markOf = createNameMarks(names)
  for (const name of names) {
    const at = path + step(name)
    const mark = Object.hasOwn(was, name) ? '' : markOf(name)
    if (mark !== '') found.push(is(at, mark, 'words'))
    if (Object.hasOwn(was, name) && Object.hasOwn(now, name)) found.push(...walk(was[name], now[name], at))
    else if (Object.hasOwn(now, name)) found.push(...compareNamed('added', now[name], rest(before), at))
    else found.push(...compareNamed('removed', was[name], rest(after), at))
  }
  const named = found.length > 0 && [before, after].some(schema => schema['patternProperties'] !== undefined)
  return [
    ...found,
    ...(named ? [is(path, 'patternProperties speak of the same names, which is not judged', 'unknown')] : []),
    ...compareRest(rest(before), rest(after), path),
  ]
}

function compareRest(was: unknown, now: unknown, path: string): SchemaChange[] {
  if (was !== false && now === false) return [is(path, 'other properties are refused now', 'less')]
  if (was === false && now !== false) return [is(path, 'other properties are let in now', 'more')]
  return walk(was, now, `${path}.*`)
}

const compareItems: Compare = (before, after, path) => {
  const [was = true, now = true] = [before['items'], after['items']]
  if (Array.isArray(was) || Array.isArray(now)) return unknown('items')(before, after, path)
  return walk(was, now, `${path}[]`)
}

/** Members of one place each: where every one accepts as much as before or more, so do all of them together. */
const compareMembers =
  (keyword: 'anyOf' | 'allOf' | 'oneOf'): Compare =>
  (before, after, path) => {
    const [was, now] = [before[keyword], after[keyword]]
    if (isSame(was, now)) return []
    const notJudged = is(path, `${keyword} changed, which is not judged`, 'unknown')
    if (!Array.isArray(was) || !Array.isArray(now)) return [notJudged]
    if (now.length < was.length || (keyword !== 'anyOf' && now.length > was.length)) return [notJudged]
    const found = was.flatMap((member, index) => walk(member, now[index], `${path}|${index + 1}`))
    const more = now.length > was.length ? [is(path, `${now.length - was.length} more of ${keyword}`, 'more')] : []
    const isSafe = ({ verdict }: SchemaChange) => verdict === 'words' || (keyword !== 'oneOf' && verdict === 'more')
    return found.every(isSafe) ? [...found, ...more] : [notJudged]
  }

/** Schemas that stand elsewhere, or that must not fit: what is less there may be more here. */
const compareApart =
  (keyword: string): Compare =>
  (before, after, path) => {
    const [was, now] = [schemasIn(before[keyword]), schemasIn(after[keyword])]
    const found = Object.keys(was).flatMap(name => walk(was[name], now[name], `${path}/${keyword}${step(name)}`))
    return found.every(change => !isStructural(change)) ? found : unknown(keyword)(before, after, path)
  }

const KEYWORDS: Readonly<Record<string, Compare>> = {
  ...Object.fromEntries(WORDS.map(keyword => [keyword, compareWords(keyword)])),
  ...Object.fromEntries(['minLength', 'minItems', 'minProperties'].map(one => [one, compareBound(one, 1, 0)])),
  ...Object.fromEntries(['minimum', 'exclusiveMinimum'].map(one => [one, compareBound(one, 1, -Infinity)])),
  ...Object.fromEntries(
    ['maxLength', 'maxItems', 'maxProperties', 'maximum', 'exclusiveMaximum'].map(one => [
      one,
      compareBound(one, -1, Infinity),
    ]),
  ),
  ...Object.fromEntries(
    ['pattern', 'format', 'multipleOf', 'propertyNames'].map(one => [one, compareRestriction(one)]),
  ),
  type: compareTypes,
  enum: compareValues,
  uniqueItems: compareUnique,
  required: compareRequired,
  properties: compareProperties,
  items: compareItems,
  anyOf: compareMembers('anyOf'),
  allOf: compareMembers('allOf'),
  oneOf: compareMembers('oneOf'),
  $defs: compareApart('$defs'),
  definitions: compareApart('definitions'),
}

/** Keywords that are looked at with another one. */
const TOGETHER = new Map([
  ['const', 'enum'],
  ['additionalProperties', 'properties'],
])

const comparisonOf = (keyword: string): Compare =>
  (Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined) ?? unknown(keyword)

/** A schema as an object; undefined: nothing fits it. */
const asObject = (schema: unknown): JsonObject | false | undefined => {
  if (schema === true) return {}
  return schema === false || isObject(schema) ? schema : undefined
}

/** Keywords whose values are schemas by names that are no keywords. */
export const MAPS = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']

/** What else than words there is, here and below. */
function withoutWords(schema: unknown, isMap = false): unknown {
  if (Array.isArray(schema)) return schema.map(entry => withoutWords(entry))
  if (!isObject(schema)) return schema
  const entries = Object.entries(schema).filter(([keyword]) => isMap || !WORDS.includes(keyword))
  const inner = ([name, value]: [string, unknown]) =>
    [name, withoutWords(value, !isMap && MAPS.includes(name))] as const
  return Object.fromEntries(entries.map(inner))
}

function walk(before: unknown, after: unknown, path: string): SchemaChange[] {
  if (isSame(before, after)) return []
  const [was, now] = [asObject(before), asObject(after)]
  if (was === undefined || now === undefined) return [is(path, 'changed, which is not judged', 'unknown')]
  if (was === false || now === false) {
    return [is(path, was === false ? 'is let in now' : 'is refused now', was === false ? 'more' : 'less')]
  }
  const keywords = new Set([...Object.keys(was), ...Object.keys(now)].map(keyword => TOGETHER.get(keyword) ?? keyword))
  const found = [...keywords].flatMap(keyword => comparisonOf(keyword)(was, now, path))
  const isUneven = [was, now].some(schema => 'unevaluatedProperties' in schema || 'unevaluatedItems' in schema)
  const uneven = is(path, 'what is unevaluated depends on it, which is not judged', 'unknown')
  return isUneven && !isSame(withoutWords(was), withoutWords(now)) ? [...found, uneven] : found
}

/** Whether a schema has a reference to a place that is no definition: what changes there, changes here. */
function refersInside(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(refersInside)
  if (!isObject(schema)) return false
  return Object.entries(schema).some(([keyword, value]) =>
    keyword === '$ref' && typeof value === 'string'
      ? !/^#\/(?:\$defs|definitions)\/[^/]*$/.test(value)
      : /^\$(?:dynamic|recursive)Ref$/.test(keyword) || refersInside(value),
  )
}

/** How the schemas differ; empty: in nothing that is said here. */
export function compareSchemas(before: JsonObject, after: JsonObject): SchemaChange[] {
  const found = walk(before, after, '')
  if (!found.some(isStructural) || !(refersInside(before) || refersInside(after))) return found
  return [...found, is('', 'a $ref leads to what changed, which is not judged', 'unknown')]
}
