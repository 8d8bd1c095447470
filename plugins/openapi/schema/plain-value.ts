// Copies example and default values of documents.
import { isObject } from '../../../core/plugin.ts'

const MAX_DEPTH = 32

/** Copies a value. Undefined for values that are nested too deeply, such as cycles of YAML aliases. */
export function plainValue(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) return undefined
  const copy = (child: unknown) => plainValue(child, depth + 1)
  return Array.isArray(value)
    ? value.map(copy)
    : Object.fromEntries(Object.entries(value).map(([key, child]) => [key, copy(child)]))
}

const TYPE_OF: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: value => typeof value === 'string',
  number: value => typeof value === 'number',
  integer: value => Number.isInteger(value),
  boolean: value => typeof value === 'boolean',
  object: isObject,
  array: Array.isArray,
  null: value => value === null,
}

export const isTypeName = (name: unknown): name is string => typeof name === 'string' && Object.hasOwn(TYPE_OF, name)

/** True if a value has one of the types. */
export const hasType = (value: unknown, types: readonly string[]): boolean =>
  types.length === 0 || types.some(type => TYPE_OF[type]?.(value))
