// Which values of a config are secrets: those whose schema says `writeOnly: true`, wherever it stands. The one mark that
// errors (explain-problems.ts), the start (validate-value.ts, plan-options.ts) and editors go by.

import type { Path } from '../http/errors.ts'
import type { JsonSchema } from '../mcp/protocol.ts'
import { branchesOf, followRef, schemasBelow } from './follow-ref.ts'
import { isPlain } from './plain.ts'

/** A schema, and the alternatives in it. */
const withBranches = (schema: JsonSchema, root: object): JsonSchema[] => [
  schema,
  ...branchesOf(schema, root).flatMap(branch => withBranches(branch, root)),
]

/** Whether a value, or one that it stands in, is a secret by its schema; `path` begins at the schema's own value. */
export function isSecretAt(schema: object, path: Path): boolean {
  let reached = withBranches(followRef(schema as JsonSchema, schema), schema)
  for (const key of path) {
    if (reached.some(({ writeOnly }) => writeOnly === true)) return true
    reached = reached.flatMap(part => schemasBelow(part, key, schema)).flatMap(part => withBranches(part, schema))
  }
  return reached.some(({ writeOnly }) => writeOnly === true)
}

/**
 * The value, its secrets without the line break that a file ends with and nobody meant. What holds none is the very same
 * object as before.
 */
export function trimSecrets<Value>(value: Value, schema: object): Value
export function trimSecrets(value: unknown, schema: object): unknown {
  if (!namesSecrets(schema)) return value
  return trim(value, withBranches(followRef(schema as JsonSchema, schema), schema), schema, false)
}

const naming = new WeakMap<object, boolean>()

/** Definitions have none: to walk a thousand of them took a fifth of their start. */
function namesSecrets(schema: object): boolean {
  const known = naming.get(schema) ?? JSON.stringify(schema).includes('"writeOnly":true')
  naming.set(schema, known)
  return known
}

function trim(value: unknown, schemas: readonly JsonSchema[], root: object, isInSecret: boolean): unknown {
  const isSecret = isInSecret || schemas.some(({ writeOnly }) => writeOnly === true)
  if (typeof value === 'string') return isSecret ? value.replace(/[\r\n]+$/, '') : value
  const below = (key: string | number) =>
    schemas.flatMap(part => schemasBelow(part, key, root)).flatMap(part => withBranches(part, root))
  const inside = (item: unknown, inner: readonly JsonSchema[]) =>
    inner.length === 0 ? item : trim(item, inner, root, isSecret)
  if (Array.isArray(value)) {
    // All items have the same: a toolset may be a list of a thousand.
    const inner = below(0)
    const list = value.map(item => inside(item, inner))
    return list.some((item, index) => item !== value[index]) ? list : value
  }
  if (!isPlain(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, inside(item, below(key))] as const)
  const isChanged = entries.some(([key, item]) => item !== Reflect.get(value, key))
  return isChanged ? { ...value, ...Object.fromEntries(entries) } : value
}
