// Errors as data that can be sent to another process. A ToolError and a HostError keep their type.
import { HostError, ToolError } from '../../core/index.ts'
import { errorText } from '../../core/plugin.ts'

const MAX_CAUSES = 3
const MAX_TEXT = 20_000

export interface PackedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly isTool: boolean
  /** Set for a HostError. `data` is JSON. */
  readonly host?: Pick<HostError, 'kind' | 'detail' | 'headers' | 'reason'> & { readonly data: string | undefined }
  readonly cause?: PackedError
  /** The number of the request that failed with this error. */
  readonly ask?: number
}

const ASK = Symbol('ask')

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, MAX_TEXT) : undefined)

export function packError(thrown: unknown, causes = MAX_CAUSES): PackedError {
  const isTool = ToolError.is(thrown)
  const message = isTool ? thrown.message : errorText(thrown).slice(0, MAX_TEXT)
  const at = (key: string) => attempt(() => Reflect.get(Object(thrown), key) as unknown)
  const cause = at('cause')
  const ask = attempt(() => Reflect.get(Object(thrown), ASK) as unknown)
  const packed = {
    name: textOf(at('name')) ?? 'Error',
    message,
    stack: textOf(at('stack')),
    isTool,
    ...(attempt(() => cause instanceof Error) && causes > 0 && { cause: packError(cause, causes - 1) }),
    ...(typeof ask === 'number' && { ask }),
  }
  if (!HostError.is(thrown)) return packed
  const { kind, detail, data, headers, reason } = thrown
  return { ...packed, host: { kind, detail, data: attempt(() => JSON.stringify(data)), headers, reason } }
}

function remake({ name, message, isTool, host, cause: packed }: PackedError): Error {
  const options = packed === undefined ? {} : { cause: unpackError(packed) }
  if (isTool) return new ToolError(message, options)
  if (!host) return Object.assign(new Error(message, options), { name })
  const { kind, data, ...more } = host
  const given = Object.entries({ ...more, ...(data !== undefined && { data: JSON.parse(data) }) })
  return new HostError(kind, { ...Object.fromEntries(given.filter(([, value]) => value !== undefined)), ...options })
}

/** Restores the error; an author's own class becomes Error. */
export function unpackError(packed: PackedError): Error {
  const error = remake(packed)
  if (packed.stack !== undefined) error.stack = packed.stack
  if (packed.ask !== undefined) Object.defineProperty(error, ASK, { value: packed.ask })
  return error
}
