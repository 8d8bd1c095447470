// Messages between primary and workers, marked by `mcpHost`, because tools in workers can send their own messages.

import type { CountTogether } from '../../core/kernel/kernel-host.ts'
import type { CloseReport } from '../../core/kernel/shutdown.ts'
import type { RouteSummary } from '../../core/mcp/routes/route-summary.ts'

export type CountArguments = Parameters<CountTogether>
export type CountResult = Awaited<ReturnType<CountTogether>>

type HubRequest<To extends string, Fields = object> = { readonly to: To; readonly requestId: number } & Readonly<Fields>

/** From a worker to the hub (hub.ts). Each `requestId` has one response. */
export type ToHub =
  | { readonly to: 'subscribe' }
  | { readonly to: 'join'; readonly node: string }
  | HubRequest<'publish', { texts: readonly string[] }>
  | HubRequest<'since', { number: number }>
  | HubRequest<'count', { counts: readonly CountArguments[] }>
  | HubRequest<'leave' | 'has', { node: string }>
  /** `requestAll`: the hub sends a `request` to each worker. `response`: one worker's response, with the id of that `request`. */
  | HubRequest<'requestAll', { name: string }>
  | { readonly to: 'response'; readonly requestId: number; readonly value: unknown }
  /** `share`: see `Bus.send`. */
  | HubRequest<'send', { node: string; text: string; share: string }>

export type FromHub =
  | { readonly from: 'subscribed'; readonly number: number }
  | { readonly from: 'broadcast'; readonly first: number; readonly texts: readonly string[] }
  /** Broadcasts up to this number can be missing. */
  | { readonly from: 'missed'; readonly number: number }
  | { readonly from: 'received'; readonly node: string; readonly text: string }
  | { readonly from: 'request'; readonly requestId: number; readonly name: string }
  | { readonly from: 'response'; readonly requestId: number; readonly value: unknown }

/** Sent instead of a boolean if the receiver's queue is full. */
export const FULL = 'full'

export interface Serving {
  readonly url: string
  readonly routes: readonly RouteSummary[]
  readonly file: string
  readonly digests: Readonly<Record<string, string>>
}

export type WorkerMessage =
  | ({ readonly mcpHost: 'ready' } & Serving)
  /** `failed`: startup failed. `failing`: an uncaught error; the worker drains and exits. */
  | { readonly mcpHost: 'failed' | 'failing'; readonly problem: string }
  /** `acknowledged`: order received. `pong`: response to `ping`. `reload`: as SIGHUP. */
  | { readonly mcpHost: 'acknowledged' | 'pong' | 'reload' }
  | ({ readonly mcpHost: 'drained' } & CloseReport)
  | { readonly mcpHost: 'hub'; readonly message: ToHub }

/** `stop`: drain as a single process does. `handOver`: see `Host.close`. */
export interface StopOrder {
  readonly mcpHost: 'stop'
  readonly handOver?: boolean
}

/**
 * `retire`: another worker takes over; drain without refusing a request. `leave` responds to `drained`: no connection is in
 * transit to the worker.
 */
export type Order = StopOrder | { readonly mcpHost: 'retire' | 'leave' }

export type PrimaryMessage =
  | Order
  | { readonly mcpHost: 'ping' }
  | { readonly mcpHost: 'hub'; readonly message: FromHub }

const isMarked = (message: unknown) => typeof message === 'object' && message !== null && 'mcpHost' in message
export const isFromWorker = (message: unknown): message is WorkerMessage => isMarked(message)
export const isFromPrimary = (message: unknown): message is PrimaryMessage => isMarked(message)

/** Environment variable: 'yes' for the first worker, whose failure stops startup. */
export const FIRST_WORKER = 'MCP_HOST_FIRST_WORKER'
/** Environment variable of a worker: the process id of its primary. Plugins use it to recognise workers of one host. */
export const PRIMARY = 'MCP_HOST_PRIMARY'

/** Time limit for a worker to confirm an order to end, milliseconds. */
export const CONFIRM_TIMEOUT = 10_000
/** Time limit for a worker to stop, milliseconds: slightly less than the 30 s of service managers. */
export const STOP_TIMEOUT = 28_000
