// Canonical JSON and its hash: independent of the order of keys, and of `required` and `type` in schemas.
import { createHash } from 'node:crypto'

const DATA_KEYWORDS = new Set(['enum', 'const', 'default', 'examples'])
const SET_KEYWORDS = new Set(['required', 'type'])

const compareText = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)

function canonicalize(value: unknown, key: string, inSchema: boolean): unknown {
  if (Array.isArray(value)) {
    const list = value.map(entry => canonicalize(entry, '', inSchema))
    return inSchema && SET_KEYWORDS.has(key) && list.every(entry => typeof entry === 'string')
      ? list.sort(compareText)
      : list
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
    .sort(([one], [other]) => compareText(one, other))
    .map(([name, entry]) => [name, canonicalize(entry, name, isSchema(name) || (inSchema && !DATA_KEYWORDS.has(name)))])
  return Object.fromEntries(entries)
}

const isSchema = (name: string) => name === 'inputSchema' || name === 'outputSchema'

/** Canonical JSON: sorted keys, and in schemas sorted `required` and `type`. */
export const canonicalJson = <Value>(value: Value): Value => canonicalize(value, '', false) as Value

export const hashJson = (value: object): string =>
  `sha256-${createHash('sha256').update(JSON.stringify(value)).digest('base64url')}`

export function withHash<Value extends object>(value: Value): Value & { readonly hash: string } {
  const canonical = canonicalJson(value)
  return { hash: hashJson(canonical), ...canonical }
}

/** True if `hash` is the hash of the other keys. */
export const hasValidHash = ({ hash, ...rest }: { readonly hash: string }): boolean =>
  hash === hashJson(canonicalJson(rest))
