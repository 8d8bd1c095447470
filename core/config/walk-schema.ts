// Walks JSON Schemas along with values: references, alternatives, defaults and secrets (`writeOnly`).

import type { Path } from '../http/errors.ts'
import { getOrCreate } from '../http/get-or-create.ts'
import { isObject } from '../mcp/wire/message.ts'
import type { JsonSchema } from '../mcp/wire/protocol.ts'
import { isPlain } from './define-config.ts'

export const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null

/** Resolves `$ref` within `root` only. The schema's own keywords take precedence. */
export function followRef(schema: JsonSchema, root: object): JsonSchema {
  if (typeof schema['$ref'] !== 'string') return schema
  const { $ref, ...own } = schema as JsonSchema & { $ref: string }
  const steps = $ref.startsWith('#/') ? $ref.slice(2).split('/') : []
  const named = steps.reduce<unknown>((node, step) => (isSchema(node) ? node[unescapeStep(step)] : undefined), root)
  return isSchema(named) ? { ...followRef(named, root), ...own } : own
}

const unescapeStep = (step: string): string => step.replaceAll('~1', '/').replaceAll('~0', '~')

const CHOICES = ['anyOf', 'oneOf']
const ALL = [...CHOICES, 'allOf']

export function branchesOf(schema: JsonSchema, root: object, keywords: readonly string[] = ALL): JsonSchema[] {
  const lists = keywords.map(keyword => schema[keyword]).filter(Array.isArray)
  return lists.flatMap(list => list.filter(isSchema).map(branch => followRef(branch, root)))
}

function schemasBelow(schema: JsonSchema, key: string | number, root: object): JsonSchema[] {
  const { properties, additionalProperties, items } = schema
  const named = isSchema(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties
  return [typeof key === 'number' ? items : named].filter(isSchema).map(below => followRef(below, root))
}

/**
 * Fills in defaults at every depth. An absent object stays absent, unless its schema has `default: {}`. Unchanged objects are
 * returned as they are.
 */
export const fillDefaults = (value: unknown, schema: object): unknown =>
  fill(value, followRef(schema as JsonSchema, schema), schema)

function fill(input: unknown, schema: JsonSchema, root: object): unknown {
  const { default: defaultValue } = schema
  const value = input === undefined && defaultValue !== undefined ? structuredClone(defaultValue) : input
  if (Array.isArray(value)) return fillList(value, partsFor('array', schema, root), root)
  return isObject(value) ? fillObject(value, partsFor('object', schema, root), root) : value
}

function partsFor(kind: 'array' | 'object', schema: JsonSchema, root: object): JsonSchema[] {
  const always = branchesOf(schema, root, ['allOf'])
  const matching = branchesOf(schema, root, CHOICES).filter(({ type }) => [type].flat().includes(kind))
  return [
    schema,
    ...[...always, ...(matching.length === 1 ? matching : [])].flatMap(part => partsFor(kind, part, root)),
  ]
}

function fillList(list: readonly unknown[], parts: readonly JsonSchema[], root: object): readonly unknown[] {
  // All items share one schema, and a toolset can be a list of a thousand.
  const schemas = parts.flatMap(part => schemasBelow(part, 0, root))
  const filled = list.map(item => fillWith(item, schemas, root))
  return filled.some((item, index) => item !== list[index]) ? filled : list
}

function fillObject(value: object, parts: readonly JsonSchema[], root: object): object {
  const described = parts.flatMap(({ properties }) => (isSchema(properties) ? Object.keys(properties) : []))
  const keys = new Set([...described, ...Object.keys(value)])
  const entries = [...keys].flatMap(key => {
    const schemas = parts.flatMap(part => schemasBelow(part, key, root))
    const item = fillWith(Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined, schemas, root)
    return item === undefined ? [] : [[key, item] as const]
  })
  const isSame = entries.every(([key, item]) => Object.hasOwn(value, key) && item === Reflect.get(value, key))
  if (isSame) return value
  const own = Object.getOwnPropertyDescriptors(Object.fromEntries(entries))
  return Object.create(Object.getPrototypeOf(value), own)
}

const fillWith = (value: unknown, schemas: readonly JsonSchema[], root: object): unknown =>
  schemas.reduce((filled, schema) => fill(filled, schema, root), value)

const withBranches = (schema: JsonSchema, root: object): JsonSchema[] => [
  schema,
  ...branchesOf(schema, root).flatMap(branch => withBranches(branch, root)),
]

const descend = (schemas: readonly JsonSchema[], key: string | number, root: object): JsonSchema[] =>
  schemas.flatMap(part => schemasBelow(part, key, root)).flatMap(part => withBranches(part, root))

/** The schemas of a value and of its parents, from the outside in. `path` is relative to the schema. */
export function schemasAlong(schema: object, path: Path): JsonSchema[][] {
  const along = [withBranches(followRef(schema as JsonSchema, schema), schema)]
  for (const key of path) along.push(descend(along.at(-1) ?? [], key, schema))
  return along
}

export const isSecretAt = (schema: object, path: Path): boolean =>
  schemasAlong(schema, path).some(schemas => schemas.some(({ writeOnly }) => writeOnly === true))

/** Removes trailing line breaks of secrets. Returns the same object if nothing changes. */
export function trimSecrets<Value>(value: Value, schema: object): Value
export function trimSecrets(value: unknown, schema: object): unknown {
  if (!namesSecrets(schema)) return value
  return trim(value, withBranches(followRef(schema as JsonSchema, schema), schema), schema, false)
}

const naming = new WeakMap<object, boolean>()

/** Skips definitions, whose walk would take a fifth of the startup time with a thousand of them. */
const namesSecrets = (schema: object): boolean =>
  getOrCreate(naming, schema, () => JSON.stringify(schema).includes('"writeOnly":true'))

function trim(value: unknown, schemas: readonly JsonSchema[], root: object, isInSecret: boolean): unknown {
  const isSecret = isInSecret || schemas.some(({ writeOnly }) => writeOnly === true)
  if (typeof value === 'string') return isSecret ? value.replace(/[\r\n]+$/, '') : value
  const below = (key: string | number) => descend(schemas, key, root)
  const inside = (item: unknown, inner: readonly JsonSchema[]) =>
    inner.length === 0 ? item : trim(item, inner, root, isSecret)
  if (Array.isArray(value)) {
    const inner = below(0)
    const list = value.map(item => inside(item, inner))
    return list.some((item, index) => item !== value[index]) ? list : value
  }
  if (!isPlain(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, inside(item, below(key))] as const)
  const isChanged = entries.some(([key, item]) => item !== Reflect.get(value, key))
  return isChanged ? { ...value, ...Object.fromEntries(entries) } : value
}
