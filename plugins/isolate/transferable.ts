// Checks which values can be transferred: plain data only. A clone of a class instance would lose its class.
import { serialize } from 'node:v8'

/** Maximum bytes of one result, or of the arguments of one call: the host's event loop reads them. */
const MAX_BYTES = 16 * 1_024 ** 2
/** Maximum bytes of the arguments of one `progress` or `log`. */
export const MAX_NOTIFY_BYTES = 1_024 ** 2

const PLAIN = new Set<unknown>([Object.prototype, Array.prototype, Date.prototype, Map.prototype, Set.prototype, null])

function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  return (
    PLAIN.has(prototype) ||
    (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype ?? {}, 'isPrototypeOf'))
  )
}

const entriesOf = (value: object): Iterable<readonly [key: string, inner: unknown]> =>
  value instanceof Map || value instanceof Set
    ? [...value].flat().map(inner => ['', inner] as const)
    : Object.entries(value)

function checkPlain(root: unknown): void {
  const seen = new Set<unknown>()
  const waiting: Array<readonly [path: string, value: unknown]> = [['', root]]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [path, value] = next
    const at = path || 'it'
    if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`${at} is a ${typeof value}`)
    if (typeof value !== 'object' || value === null || seen.has(value)) continue
    seen.add(value)
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) continue
    if (!isPlain(value)) {
      const name = Object.getPrototypeOf(value)?.constructor?.name || 'a class'
      throw new TypeError(`${at} is an instance of ${name}; use a plain object`)
    }
    for (const [key, inner] of entriesOf(value)) {
      waiting.push([path && key ? `${path}.${key}`.slice(0, 200) : key || path, inner])
    }
  }
}

/** Serializes a value for `deserialize` of `node:v8`. Throws a TypeError if the value cannot be transferred. */
export function toBytes(value: unknown, most = MAX_BYTES): Uint8Array {
  checkPlain(value)
  const bytes = serialize(value)
  if (bytes.length > most) throw new TypeError(`it is larger than ${most / 1_024 ** 2} MB`)
  return bytes
}
