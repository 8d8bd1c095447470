// Walks the subschemas of a JSON Schema, up to limits.
import { isObject } from '../wire/message.ts'
import type { JsonSchema } from '../wire/protocol.ts'

// 2026-07-28, basic, "Composition-Keyword Resource Use".
const MAX_DEPTH = 64
const MAX_SUBSCHEMAS = 5_000

const NAMED = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items']
const SINGLE = [
  ...['items', 'additionalItems', 'contains', 'additionalProperties', 'propertyNames', 'not', 'if', 'then', 'else'],
  ...['unevaluatedItems', 'unevaluatedProperties', 'contentSchema'],
]

/** Includes `root`. Throws above 64 levels or 5,000 subschemas. */
export function* subschemas(root: JsonSchema): Generator<{ schema: JsonSchema; path: readonly string[] }> {
  const waiting = [{ schema: root, path: [] as readonly string[], depth: 1 }]
  let count = 0
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { schema, path, depth } = next
    if (depth > MAX_DEPTH) throw new Error(`a JSON Schema may nest ${MAX_DEPTH} levels deep; this one goes deeper`)
    if (++count > MAX_SUBSCHEMAS)
      throw new Error(`a JSON Schema may hold ${MAX_SUBSCHEMAS} subschemas; this one has more`)
    yield { schema, path }
    for (const [steps, child] of [...children(schema)].reverse()) {
      waiting.push({ schema: child, path: [...path, ...steps], depth: depth + 1 })
    }
  }
}

function* children(schema: JsonSchema): Generator<[steps: string[], child: JsonSchema]> {
  for (const keyword of SINGLE) {
    const child = schema[keyword]
    if (isObject(child)) yield [[keyword], child]
  }
  for (const keyword of LISTS) {
    const list = schema[keyword]
    if (!Array.isArray(list)) continue
    for (const [index, child] of list.entries()) if (isObject(child)) yield [[keyword, String(index)], child]
  }
  for (const keyword of NAMED) {
    const named = schema[keyword]
    if (!isObject(named)) continue
    for (const [name, child] of Object.entries(named)) if (isObject(child)) yield [[keyword, name], child]
  }
}

export const isReference = (schema: JsonSchema): boolean =>
  '$ref' in schema || '$dynamicRef' in schema || '$recursiveRef' in schema

/** The keyword that counts references, see `createLinearAjv`. */
export const COUNTED = 'mcpHostCounted'

/** A copy for ajv: without `nullable`, which JSON Schema does not define and ajv interprets or rejects, and with counted references. */
export function copyForAjv(schema: JsonSchema): JsonSchema {
  if (![...subschemas(schema)].some(({ schema: part }) => 'nullable' in part || isReference(part))) return schema
  const copy = structuredClone(schema)
  for (const { schema: part } of subschemas(copy)) {
    delete (part as Record<string, unknown>)['nullable']
    if (isReference(part)) Object.assign(part, { [COUNTED]: true })
    const { properties } = part
    if (!isObject(properties)) continue
    // Properties that select an alternative come first: another one then ends before it looks at nested values.
    const entries = Object.entries(properties).sort(([, one], [, other]) => isFixed(other) - isFixed(one))
    Object.assign(part, { properties: Object.fromEntries(entries) })
  }
  return copy
}

const isFixed = (schema: unknown): number => Number(isObject(schema) && ('const' in schema || 'enum' in schema))
