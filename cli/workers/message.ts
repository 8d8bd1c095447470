// Messages between the primary process and its workers. Tools run in the workers and can send messages of their own, so ours
// have the key `mcpHost`.
import type { CloseReport, RouteSummary } from '../../core/create-host.ts'
import type { FromHub, ToHub } from './hub.ts'

/** What a worker serves, once it listens. `file` is the config. */
export interface Serving {
  readonly url: string
  readonly routes: readonly RouteSummary[]
  readonly file: string
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
