// Messages between the host, a worker process and its thread.
import type { MessagePort } from 'node:worker_threads'
import type { CallContext } from '../../core/index.ts'
import type { Slots } from '../../core/internal.ts'
import type { PackedError } from './pack-error.ts'

export type Isolation = Slots['isolation']
export type IsolatedCall = Parameters<Isolation['run']>[0]

/** The part of a call's context that is data. */
export type CallData = Pick<CallContext, 'user' | 'session' | 'route' | 'headers' | 'client' | 'meta'> & {
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
export interface Ask {
  readonly n: number
  /** The name of a context method that returns a promise. */
  readonly what: string
  readonly args: readonly unknown[]
}

export type ToHost =
  | { readonly kind: 'begun'; readonly pid: number }
  | { readonly kind: 'tell'; readonly what: NotifyMethod; readonly args: readonly unknown[] }
  | { readonly kind: 'ask'; readonly asks: readonly Ask[] }
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
