// Messages between the primary process and its workers. Tools run in the workers and can send messages of their own, so ours
// have the key `mcpHost`.
import type { CloseReport, RouteSummary } from '../../core/create-host.ts'
import type { CountTogether } from '../../core/kernel/kernel-host.ts'

export type ToCount = Parameters<CountTogether>
export type Counted = Awaited<ReturnType<CountTogether>>

type Asking<To extends string, Fields = object> = { readonly to: To; readonly question: number } & Readonly<Fields>

/** From a worker to the hub (hub.ts). Each `question` has one answer. */
export type ToHub =
  | { readonly to: 'hear' }
  | { readonly to: 'join'; readonly node: string }
  | Asking<'tell', { texts: readonly string[] }>
  | Asking<'since', { number: number }>
  | Asking<'count', { counts: readonly ToCount[] }>
  | Asking<'leave' | 'has', { node: string }>
  /** `share`: see `Neighbours.send`. */
  | Asking<'send', { node: string; text: string; share: string }>

/** From the hub to a worker. */
export type FromHub =
  /** The number of the last broadcast. */
  | { readonly from: 'place'; readonly number: number }
  | { readonly from: 'told'; readonly first: number; readonly texts: readonly string[] }
  /** Broadcasts up to this number can be missing. */
  | { readonly from: 'missed'; readonly number: number }
  | { readonly from: 'received'; readonly node: string; readonly text: string }
  | { readonly from: 'answer'; readonly question: number; readonly value: unknown }

/** In place of true or false: the receiver has not read what it was sent before. */
export const FULL = 'full'

/** What a worker serves, once it listens. `file` is the config. */
export interface Serving {
  readonly url: string
  readonly routes: readonly RouteSummary[]
  readonly file: string
  /** A digest of each file of the project, as it was when the worker read it. */
  readonly digests: Readonly<Record<string, string>>
}

/** From a worker to the primary. */
export type WorkerMessage =
  | ({ readonly mcpHost: 'ready' } & Serving)
  /** `failed`: it could not start. `failing`: an uncaught error; it drains and exits. */
  | { readonly mcpHost: 'failed' | 'failing'; readonly problem: string }
  /** `heard`: it received an order. `awake`: the answer to `pulse`. */
  | { readonly mcpHost: 'heard' | 'awake' }
  | ({ readonly mcpHost: 'drained' } & CloseReport)
  /** Asks every worker for its answer to a name. */
  | { readonly mcpHost: 'asks'; readonly name: string; readonly question: number }
  /** Answers question `question` of the primary. */
  | { readonly mcpHost: 'gives'; readonly question: number; readonly given: unknown }
  | { readonly mcpHost: 'hub'; readonly message: ToHub }

/** `stop`: all end; drain as a single process does. `handOver` is that of `Host.close`. */
export interface StopOrder {
  readonly mcpHost: 'stop'
  readonly handOver?: boolean
}

/**
 * `retire`: another worker takes over; drain without refusing a request. `leave` answers `drained`: no connection is under way
 * to the worker any more.
 */
export type Order = StopOrder | { readonly mcpHost: 'retire' | 'leave' }

/** From the primary to a worker. */
export type PrimaryMessage =
  | Order
  /** Checks the worker's event loop. */
  | { readonly mcpHost: 'pulse' }
  | { readonly mcpHost: 'asked'; readonly name: string; readonly question: number }
  /** The answers of all workers. */
  | { readonly mcpHost: 'given'; readonly question: number; readonly given: readonly unknown[] }
  | { readonly mcpHost: 'hub'; readonly message: FromHub }

const isOurs = (message: unknown) => typeof message === 'object' && message !== null && 'mcpHost' in message
export const isFromWorker = (message: unknown): message is WorkerMessage => isOurs(message)
export const isFromPrimary = (message: unknown): message is PrimaryMessage => isOurs(message)

/** Environment variable of a worker: 'yes' for the first one, whose failure stops the start. */
export const FIRST_WORKER = 'MCP_HOST_FIRST_WORKER'

/** How long a worker can take to receive an order to end, milliseconds. */
export const HEARING_TIME = 10_000
/** How long a worker can take to stop, milliseconds: a little less than the 30 s that service managers allow. */
export const STOPPING_TIME = 28_000
