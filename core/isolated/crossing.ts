// What may cross between threads: data. Structured clone refuses functions, but makes plain objects of a class's instances
// without a word, and what a client would be sent would be another thing than without the thread.

/** Bytes of one result, or of the arguments of a call: reading them holds the host's own event loop. */
export const MAX_CROSSING = 16 * 1_024 ** 2
/** Bytes of what is told in a message to the client. */
export const MAX_TOLD = 1_024 ** 2

/** Bytes that a value takes beside its text. */
const COST = 16

const KEPT = new Set<unknown>([Object.prototype, Array.prototype, Date.prototype, Map.prototype, Set.prototype, null])

/** A plain object of another realm, such as what `vm` makes. */
const isForeignPlain = (prototype: object): boolean =>
  Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')

const place = (path: readonly string[]) => (path.length === 0 ? 'it' : path.join('.'))

function faultOf(value: object, path: readonly string[]): string | undefined {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return undefined
  const prototype: object | null = Object.getPrototypeOf(value)
  if (KEPT.has(prototype) || (prototype !== null && isForeignPlain(prototype))) return undefined
  const name = prototype?.constructor?.name || 'a class'
  return `${place(path)} is an instance of ${name}; give a plain object`
}

interface Step {
  readonly value: unknown
  readonly path: readonly string[]
}

function stepsInto(value: object, path: readonly string[]): Step[] {
  if (value instanceof Map) return [...value].flat().map(held => ({ value: held, path }))
  if (value instanceof Set) return [...value].map(held => ({ value: held, path }))
  return Object.entries(value).map(([key, held]) => ({ value: held, path: path.length < 5 ? [...path, key] : path }))
}

const megabytes = (bytes: number) => `${Math.ceil(bytes / 1_024 ** 2)} MB`

/** Why a value cannot cross, in words; undefined: it can. */
export function crossingFault(root: unknown, most = MAX_CROSSING): string | undefined {
  const seen = new Set<object>()
  const waiting: Step[] = [{ value: root, path: [] }]
  let bytes = 0
  for (let step = waiting.pop(); step; step = waiting.pop()) {
    const { value, path } = step
    bytes += COST
    if (typeof value === 'string') bytes += value.length
    if (typeof value === 'function' || typeof value === 'symbol') return `${place(path)} is a ${typeof value}`
    if (typeof value === 'object' && value !== null && !seen.has(value)) {
      seen.add(value)
      const fault = faultOf(value, path)
      if (fault !== undefined) return fault
      if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) bytes += value.byteLength
      else if (Array.isArray(value) && value.length * COST > most) bytes += value.length * COST
      else for (const next of stepsInto(value, path)) waiting.push(next)
    }
    if (bytes > most) return `it is larger than ${megabytes(most)}, which is the most that crosses`
  }
  return undefined
}
