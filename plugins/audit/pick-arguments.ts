// Of a call's arguments what the config lists by name, cut, and nothing of what is inside of objects and lists.
import { isObject } from '../../core/index.ts'
import { plainText } from './plain-text.ts'

/** Characters of one value. */
const MOST = 256

function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return plainText(value, MOST)
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
  return Array.isArray(value) ? `[a list of ${value.length}]` : '[an object]'
}

/** Undefined where none of them was given. */
export function pickArguments(names: readonly string[], given: unknown): Record<string, unknown> | undefined {
  if (!isObject(given)) return undefined
  const found = names.filter(name => Object.hasOwn(given, name)).map(name => [name, shownValue(given[name])] as const)
  return found.length === 0 ? undefined : Object.fromEntries(found)
}
