// Limits the size of a tool's schema: deeper parts of larger schemas accept any value.
import type { JsonSchema } from '../../../core/index.ts'
import { isObject } from '../../../core/plugin.ts'
import type { Reached } from './definitions.ts'

export interface FittedSchema {
  readonly schema: JsonSchema
  readonly bytes: number
  /** The definitions that accept any value, and whether deeper parts outside of definitions also do. */
  readonly simplified: readonly string[]
}

const ANYTHING = { description: "Any value: see the API's documentation." } as const
const INLINE = '(deeper parts)'

const sizes = new WeakMap<object, number>()

function byteSize(schema: JsonSchema | boolean): number {
  if (typeof schema === 'boolean') return 5
  const size = sizes.get(schema) ?? Buffer.byteLength(JSON.stringify(schema))
  sizes.set(schema, size)
  return size
}

/** Size of `,"name":` without the name. */
const KEY = 4
/** Size of an empty `$defs`, minus the comma that the first definition does not have. */
const DEFS = Buffer.byteLength(',"$defs":{}') - 1

/**
 * Fits the schema and its definitions into `limit` bytes: first without examples, then without the deepest definitions,
 * then without deeper parts of the rest. Undefined if the schema is still too large.
 */
export function fitSchema(root: JsonSchema, reached: readonly Reached[], limit: number): FittedSchema | undefined {
  const whole = measure(root, reached, new Set())
  if (whole.bytes <= limit) return { ...whole, simplified: [] }
  const change = (edit: Edit) => ({
    root: edited(root, edit) as JsonSchema,
    definitions: reached.map(one => ({ ...one, schema: edited(one.schema, edit) as JsonSchema | boolean })),
  })
  const bare = change(withoutExamples)
  const small = measure(bare.root, bare.definitions, new Set())
  if (small.bytes <= limit) return { ...small, simplified: [] }
  const loose = change(loosen)
  const deepestFirst = [...loose.definitions].sort(
    (one, other) => other.distance - one.distance || byteSize(other.schema) - byteSize(one.schema),
  )
  const simplify = (count: number) => {
    const names = new Set(deepestFirst.slice(0, count).map(({ name }) => name))
    const fitted = measure(loose.root, loose.definitions, names)
    return { ...fitted, simplified: keepDefinitions(fitted.schema, names) }
  }
  let [tooFew, enough] = [0, deepestFirst.length]
  const fewest = simplify(enough)
  if (fewest.bytes > limit) return fitInline(loose.root, fewest, limit)
  while (enough - tooFew > 1) {
    const middle = Math.floor((tooFew + enough) / 2)
    if (simplify(middle).bytes <= limit) enough = middle
    else tooFew = middle
  }
  return simplify(enough)
}

/** Cuts the schema itself, after its definitions. */
function fitInline(root: JsonSchema, { schema: { $defs }, simplified }: FittedSchema, limit: number) {
  for (let depth = MAX_INLINE; depth >= 0; depth--) {
    const schema = depth === 0 ? keepTypes(root) : (prune(root, depth) as JsonSchema)
    const needed = [...listRefs(schema)].map(name => [name, Object(ANYTHING)] as const)
    const whole = needed.length > 0 && $defs ? { ...schema, $defs: Object.fromEntries(needed) } : schema
    const bytes = Buffer.byteLength(JSON.stringify(whole))
    if (bytes <= limit) return { schema: whole, bytes, simplified: [...simplified, INLINE] }
  }
  return undefined
}

const MAX_INLINE = 12

const keepDefinitions = ({ $defs }: JsonSchema, names: ReadonlySet<string>) =>
  Object.keys(isObject($defs) ? $defs : {}).filter(name => names.has(name))

/** Returns the schema with the definitions that it still reaches, and its size in bytes. */
function measure(root: JsonSchema, reached: readonly Reached[], simplified: ReadonlySet<string>) {
  const byName = new Map(reached.map(one => [one.name, one]))
  const $defs: Record<string, JsonSchema | boolean> = {}
  let bytes = byteSize(root)
  const waiting = listRefs(root)
  for (const name of waiting) {
    const definition = byName.get(name)
    if (!definition) continue
    const isSimple = simplified.has(name)
    const schema = isSimple ? ANYTHING : definition.schema
    $defs[name] = schema
    bytes += byteSize(schema) + Buffer.byteLength(name) + KEY
    if (!isSimple) for (const next of definition.refersTo) waiting.add(next)
  }
  if (Object.keys($defs).length === 0) return { schema: root, bytes }
  return { schema: { ...root, $defs }, bytes: bytes + DEFS }
}

const refCache = new WeakMap<object, ReadonlySet<string>>()

function listRefs(root: JsonSchema): Set<string> {
  const known = refCache.get(root)
  if (known) return new Set(known)
  const names = new Set<string>()
  const waiting: unknown[] = [root]
  for (const value of waiting) {
    if (typeof value !== 'object' || value === null) continue
    for (const [key, child] of Object.entries(value)) {
      if (key === '$ref' && typeof child === 'string') names.add(child.slice('#/$defs/'.length))
      else if (typeof child === 'object') waiting.push(child)
    }
  }
  refCache.set(root, names)
  return new Set(names)
}

/** Returns the entries of a schema object to keep, under the same or another keyword. */
type Edit = (key: string, value: unknown) => readonly (readonly [string, unknown])[]

const withoutExamples: Edit = (key, value) => (key === 'examples' && Array.isArray(value) ? [] : [[key, value]])

const STRICT = new Set(['not', 'if', 'then', 'else', 'unevaluatedItems', 'unevaluatedProperties', 'maxContains'])

/** Drops keywords that would reject values if a part accepts any value. */
const loosen: Edit = (key, value) => {
  if (key === 'oneOf' && Array.isArray(value)) return [['anyOf', value]]
  return STRICT.has(key) ? [] : withoutExamples(key, value)
}

const edits = new WeakMap<Edit, WeakMap<object, unknown>>()

function edited(value: unknown, edit: Edit, isNames = false): unknown {
  if (typeof value !== 'object' || value === null) return value
  const cache = edits.get(edit) ?? new WeakMap<object, unknown>()
  edits.set(edit, cache)
  const known = cache.get(value)
  if (known !== undefined) return known
  const child = (key: string, one: unknown) => [key, edited(one, edit, !isNames && NAMES.has(key))] as const
  const result = Array.isArray(value)
    ? value.map(one => edited(one, edit))
    : Object.fromEntries(
        Object.entries(value)
          .flatMap(([key, one]) => (isNames ? [[key, one] as const] : edit(key, one)))
          .map(([key, one]) => child(key, one)),
      )
  cache.set(value, result)
  return result
}

/** Keywords whose keys are names. */
const NAMES = new Set(['properties', 'patternProperties', 'dependentSchemas'])

/** Replaces parts below `depth` levels of properties and items. */
function prune(schema: unknown, depth: number): unknown {
  if (!isObject(schema)) return schema
  if (depth === 0) {
    const { type, description = ANYTHING.description } = schema
    return { ...(type !== undefined && { type }), description, ...([type].flat().includes('array') && { items: {} }) }
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, truncateKeyword(key, value, depth)]))
}

/** Returns the properties with their types, without descriptions. */
function keepTypes(root: JsonSchema): JsonSchema {
  const { properties } = root
  if (!isObject(properties)) return root
  const bare = Object.entries(properties).map(([name, one]) => {
    const type = isObject(one) ? one['type'] : undefined
    return [name, { ...(type !== undefined && { type }), ...([type].flat().includes('array') && { items: {} }) }]
  })
  return { ...root, properties: Object.fromEntries(bare) }
}

function truncateKeyword(key: string, value: unknown, depth: number): unknown {
  if (key === 'properties' && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, prune(one, depth - 1)]))
  }
  if (['items', 'additionalProperties'].includes(key)) return prune(value, depth - 1)
  if (['allOf', 'anyOf', 'oneOf'].includes(key) && Array.isArray(value)) return value.map(one => prune(one, depth - 1))
  return value
}
