// What a thread and its host say to each other, by structured clone.
import type { MessagePort } from 'node:worker_threads'
import type { User } from '../kernel/user.ts'
import type { ClientCapabilities, Implementation, Meta } from '../mcp/protocol.ts'
import type { Revision } from '../mcp/revisions.ts'
import type { PackedError } from './pack-error.ts'

/** What a thread begins with. */
export interface ThreadData {
  readonly port: MessagePort
  /** The module of its tools. */
  readonly file: string
  /** Bytes that it may hold. */
  readonly memory: number
  /** Counts what the host has read of a call's `tell`s: a thread that says more than is read says less. */
  readonly read: Int32Array<SharedArrayBuffer>
}

/** What the context of a call knows, as data. */
export interface CallData {
  readonly user: User | undefined
  readonly session: { readonly id: string } | undefined
  readonly route: { readonly path: string; readonly params: Readonly<Record<string, string>> }
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly client: {
    readonly info: Implementation | undefined
    readonly capabilities: ClientCapabilities
    readonly revision: Revision
  }
  readonly meta: Readonly<Meta>
  readonly fetchTimeout: number
  readonly fetchHeaders: Readonly<Record<string, string>>
}

/** What is told and not answered. */
export type Told = 'progress' | 'log' | 'disconnect' | 'resourceUpdated'
/** What is asked. */
export type Asked = 'elicit' | 'sample' | 'roots' | 'ping' | 'upstreamToken' | 'settled'

export interface AskMessage {
  readonly n: number
  readonly what: Asked
  readonly args: readonly unknown[]
}

export type ToThread =
  | {
      readonly kind: 'call'
      readonly id: number
      readonly at: { readonly name: string; readonly index: number | undefined; readonly tool: string }
      readonly args: unknown
      readonly data: CallData
    }
  | { readonly kind: 'abort'; readonly id: number; readonly reason: PackedError }
  | { readonly kind: 'answer'; readonly id: number; readonly n: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly n: number; readonly error: PackedError }

export type FromThread =
  /** `task`: the number that the system has for the thread, where it tells. */
  | { readonly kind: 'ready'; readonly task: string | undefined }
  | { readonly kind: 'unloadable'; readonly error: PackedError }
  | { readonly kind: 'tell'; readonly id: number; readonly what: Told; readonly args: readonly unknown[] }
  /** It holds too much, and stands still. */
  | { readonly kind: 'over'; readonly id: number }
  | { readonly kind: 'ask'; readonly id: number; readonly asks: readonly AskMessage[] }
  /** `held`: bytes that the thread holds, without garbage where that alone would be too much. */
  | { readonly kind: 'value'; readonly id: number; readonly value: unknown; readonly held: number }
  | { readonly kind: 'thrown'; readonly id: number; readonly error: PackedError; readonly held: number }
  /** Something was thrown where nobody catches it. `id`: by the call of this number, where that is known. */
  | { readonly kind: 'uncaught'; readonly id: number | undefined; readonly tool: string; readonly error: PackedError }
