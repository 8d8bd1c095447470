// What is thrown, as data that crosses between threads, and back: a ToolError and a HostError stay what they are, and an
// error that came from the other side is, when it comes back, the very same.
import { describeThrown, isError } from '../http/describe-thrown.ts'
import { HostError, type HostErrorKind } from '../http/errors.ts'
import { ToolError } from '../mcp/tool-error.ts'

/** Causes of one error that cross with it. */
const MAX_CAUSES = 3
const MAX_TEXT = 20_000

interface HostParts {
  readonly kind: HostErrorKind
  readonly detail: string | undefined
  /** As JSON. */
  readonly data: string | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly reason: string | undefined
}

export interface PackedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly type: 'tool' | 'host' | 'error'
  readonly host?: HostParts
  readonly cause?: PackedError
  /** The number of the ask that it is the answer to. */
  readonly ask?: number
}

/** On an error that came from the other side: the ask that it answers. */
const ASK = Symbol('ask')

const text = (value: string | undefined) => (value === undefined ? undefined : value.slice(0, MAX_TEXT))

function jsonOf(data: unknown): string | undefined {
  try {
    return JSON.stringify(data)
  } catch {
    return undefined
  }
}

/** Never throws, whatever was thrown. */
export function packError(thrown: unknown, causes = MAX_CAUSES): PackedError {
  const { type = 'Error', message, stack } = describeThrown(thrown, true)
  const isTool = ToolError.is(thrown)
  // A ToolError's text is for the model, whole.
  const said = isTool ? thrown.message : message
  const packed = { name: type, message: said, stack: text(stack) }
  if (!isError(thrown)) return { ...packed, type: 'error' }
  const cause = causes > 0 && isError(thrown.cause) ? { cause: packError(thrown.cause, causes - 1) } : {}
  const ask: unknown = Reflect.get(thrown, ASK)
  const more = { ...packed, ...cause, ...(typeof ask === 'number' && { ask }) }
  if (isTool) return { ...more, type: 'tool' }
  if (!HostError.is(thrown)) return { ...more, type: 'error' }
  const { kind, detail, data, headers, reason } = thrown
  return { ...more, type: 'host', host: { kind, detail, data: jsonOf(data), headers, reason } }
}

function remake({ type, name, message, host, cause: packedCause }: PackedError): Error {
  const cause = packedCause && unpackError(packedCause)
  const options = cause === undefined ? {} : { cause }
  if (type === 'tool') return new ToolError(message, options)
  if (type === 'host' && host) {
    const { kind, detail, data, headers, reason } = host
    return new HostError(kind, {
      ...(detail !== undefined && { detail }),
      ...(data !== undefined && { data: JSON.parse(data) }),
      ...(headers && { headers: { ...headers } }),
      ...(reason !== undefined && { reason }),
      ...options,
    })
  }
  const error = new Error(message, options)
  error.name = name
  return error
}

/** An error as it was, but for its class where that is the author's own. */
export function unpackError(packed: PackedError): Error {
  const error = remake(packed)
  if (packed.stack !== undefined) error.stack = packed.stack
  if (packed.ask !== undefined) Object.defineProperty(error, ASK, { value: packed.ask })
  return error
}
