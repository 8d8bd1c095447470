// Messages between the host, a worker process and its thread, and the values and errors that they can carry.

import { serialize } from 'node:v8'
import type { MessagePort } from 'node:worker_threads'
import { type CallContext, HostError, ToolError } from '../../core/index.ts'
import type { Slots } from '../../core/internal.ts'
import { errorText } from '../../core/plugin.ts'

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

export type IsolatedCall = Parameters<Slots['isolation']['run']>[0]

type CallData = Pick<CallContext, 'user' | 'session' | 'route' | 'headers' | 'client' | 'meta'> & {
  readonly fetchTimeout: number
  readonly fetchHeaders: Readonly<Record<string, string>>
  readonly members: IsolatedCall['members']
}

export interface Task {
  readonly tool: string
  /** The absolute path of the tool's module. */
  readonly file: string
  /** The export of the module, and the index in an exported list. */
  readonly name: string
  readonly index: number | undefined
  readonly args: unknown
  readonly data: CallData
  /** Memory limit, bytes. */
  readonly memory: number
  /** Milliseconds that remain for this run. */
  readonly cpuTime: number
}

/** `value`: serialized by `node:v8`. */
export type Outcome = { readonly value: Uint8Array } | { readonly thrown: PackedError }
/** `cpuTime`: milliseconds. */
export type TaskResult = Outcome & { readonly cpuTime: number }

/** The exceeded limit. `stopped`: time after the end of the call. `kept`: memory held after the call. */
export type ExceededLimit = 'memory' | 'cpuTime' | 'stopped' | 'kept'

/** Methods of the context that return nothing. */
export type NotifyMethod = 'progress' | 'log' | 'disconnect' | 'resourceUpdated'
export interface HostRequest {
  readonly n: number
  /** The name of a context method that returns a promise. */
  readonly what: string
  readonly args: readonly unknown[]
}

export type ToHost =
  | { readonly kind: 'begun'; readonly pid: number }
  | { readonly kind: 'tell'; readonly what: NotifyMethod; readonly args: readonly unknown[] }
  | { readonly kind: 'ask'; readonly asks: readonly HostRequest[] }
  | { readonly kind: 'over'; readonly over: ExceededLimit }
  /** An error thrown after the end of the tool's call. */
  | { readonly kind: 'uncaught'; readonly tool: string; readonly error: PackedError }

export type ToProcess =
  | { readonly kind: 'abort'; readonly reason: PackedError }
  | { readonly kind: 'answer'; readonly n: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly n: number; readonly error: PackedError }

/** `spent`: the thread must not run another call. */
export type FromThread =
  | ToHost
  | { readonly kind: 'ready' }
  | { readonly kind: 'unloadable'; readonly error: PackedError }
  | { readonly kind: 'end'; readonly outcome: Outcome; readonly spent: boolean }

export type ToThread = ToProcess | { readonly kind: 'call'; readonly task: Task }

/** `read`: number of `tell` messages that the process has sent to the host. */
export interface ThreadData {
  readonly file: string
  readonly port: MessagePort
  readonly read: Int32Array<SharedArrayBuffer>
}
