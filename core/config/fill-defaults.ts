// Fills in what was left out. A default of the config, or of a plugin's option, is written in its schema and nowhere
// else; check-config.ts has checked the value before.
import { isObject } from '../mcp/is-object.ts'
import type { JsonSchema } from '../mcp/protocol.ts'
import { branchesOf, followRef, isSchema, schemasBelow } from './follow-ref.ts'

/**
 * The value with the defaults of its schema, at every depth; a key that is undefined counts as absent. An object that is
 * absent stays absent, unless its schema says `default: {}`: then it holds the defaults of its keys. Among alternatives
 * the only one for objects, or for lists, counts. Nothing that was given is changed: what lacks nothing is the very same
 * object as before.
 */
export const fillDefaults = (value: unknown, schema: object): unknown =>
  fill(value, followRef(schema as JsonSchema, schema), schema)

function fill(given: unknown, schema: JsonSchema, root: object): unknown {
  const value = given === undefined ? structuredClone(schema['default']) : given
  if (Array.isArray(value)) return fillList(value, partsFor('array', schema, root), root)
  return isObject(value) ? fillObject(value, partsFor('object', schema, root), root) : value
}

/** The schemas that speak of a value of this kind: its own, what must hold beside it, and the only alternative. */
function partsFor(kind: 'array' | 'object', schema: JsonSchema, root: object): JsonSchema[] {
  const { anyOf, oneOf, ...own } = schema
  const beside = branchesOf(own, root)
  const fitting = branchesOf({ anyOf, oneOf }, root).filter(({ type }) => [type].flat().includes(kind))
  return [own, ...[...beside, ...(fitting.length === 1 ? fitting : [])].flatMap(part => partsFor(kind, part, root))]
}

function fillList(list: readonly unknown[], parts: readonly JsonSchema[], root: object): readonly unknown[] {
  // All items have the same: a toolset may be a list of a thousand.
  const schemas = parts.flatMap(part => schemasBelow(part, 0, root))
  const filled = list.map(item => fillWith(item, schemas, root))
  return filled.some((item, index) => item !== list[index]) ? filled : list
}

function fillObject(value: object, parts: readonly JsonSchema[], root: object): object {
  const described = parts.flatMap(({ properties }) => (isSchema(properties) ? Object.keys(properties) : []))
  const keys = new Set([...described, ...Object.keys(value)])
  const entries = [...keys].flatMap(key => {
    const item = fillAt(Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined, key, parts, root)
    return item === undefined ? [] : [[key, item] as const]
  })
  const isSame = entries.every(([key, item]) => Object.hasOwn(value, key) && item === Reflect.get(value, key))
  if (isSame) return value
  const own = Object.getOwnPropertyDescriptors(Object.fromEntries(entries))
  return Object.create(Object.getPrototypeOf(value), own)
}

function fillAt(value: unknown, key: string, parts: readonly JsonSchema[], root: object): unknown {
  return fillWith(
    value,
    parts.flatMap(part => schemasBelow(part, key, root)),
    root,
  )
}

const fillWith = (value: unknown, schemas: readonly JsonSchema[], root: object): unknown =>
  schemas.reduce((filled, schema) => fill(filled, schema, root), value)
