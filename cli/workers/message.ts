// What the primary and its workers tell each other. The code of tools runs in the workers and may send messages of its
// own: ours have a name that nobody else uses.
import type { CloseReport, RouteSummary } from '../../core/create-host.ts'
import type { FromHub, ToHub } from './hub.ts'

/** What a worker serves, once it listens. */
export interface Serving {
  readonly url: string
  readonly routes: readonly RouteSummary[]
  /** The config. */
  readonly file: string
  /** A digest of each file of the config, by its name: what it read. */
  readonly files: Readonly<Record<string, string>>
}

/** From a worker. */
export type Told =
  | ({ readonly mcpHost: 'ready' } & Serving)
  /** It could not start; the text is for the operator. */
  | { readonly mcpHost: 'failed'; readonly problem: string }
  /** Something broke that nobody caught: it drains, and ends. */
  | { readonly mcpHost: 'failing'; readonly problem: string }
  /** It has heard an order: its event loop turns. */
  | { readonly mcpHost: 'heard' }
  | ({ readonly mcpHost: 'drained' } & CloseReport)
  /** The answer to `pulse`. */
  | { readonly mcpHost: 'awake' }
  /** It asks what all of them give for a name. */
  | { readonly mcpHost: 'asks'; readonly name: string; readonly question: number }
  /** What it gives, to the primary's question of that number. */
  | { readonly mcpHost: 'gives'; readonly question: number; readonly given: unknown }

/** From a worker to the others, and back: neighbours.ts. */
export type ForHub = { readonly mcpHost: 'hub'; readonly message: ToHub }
export type OfHub = { readonly mcpHost: 'hub'; readonly message: FromHub }

/**
 * From the primary. `stop`: everything ends; drain as a process of its own does. `retire`: the others go on; let no
 * caller notice. `leave`: the answer to `drained`; no connection is on its way to the worker any more.
 */
export type Order =
  | {
      readonly mcpHost: 'stop'
      /** As of `Host.close`. */
      readonly handOver?: boolean
    }
  | { readonly mcpHost: 'retire' | 'leave' }

/** From the primary: whether the event loop of a worker turns. */
export type Pulse = { readonly mcpHost: 'pulse' }

/** From the primary: what one worker asks of all, and what they gave. */
export type Passed =
  | { readonly mcpHost: 'asked'; readonly name: string; readonly question: number }
  | { readonly mcpHost: 'given'; readonly question: number; readonly given: readonly unknown[] }

const hasName = (message: unknown): message is { mcpHost: unknown } =>
  typeof message === 'object' && message !== null && 'mcpHost' in message

export const isTold = (message: unknown): message is Told =>
  hasName(message) &&
  ['ready', 'failed', 'failing', 'heard', 'drained', 'awake', 'asks', 'gives'].includes(String(message.mcpHost))

export const isOrder = (message: unknown): message is Order =>
  hasName(message) && ['stop', 'retire', 'leave'].includes(String(message.mcpHost))

export const isPulse = (message: unknown): message is Pulse => hasName(message) && message.mcpHost === 'pulse'

export const isPassed = (message: unknown): message is Passed =>
  hasName(message) && ['asked', 'given'].includes(String(message.mcpHost))

/** Either way: a process trusts its own primary, and the primary its workers, in what `message` is. */
export const isForHub = (message: unknown): message is ForHub => hasName(message) && message.mcpHost === 'hub'
export const isOfHub = (message: unknown): message is OfHub => hasName(message) && message.mcpHost === 'hub'

/** In the environment of a worker: whether the start hangs on it, as it does on the first. */
export const FIRST_WORKER = 'MCP_HOST_FIRST_WORKER'
/** In the environment of a worker: the process id of its primary. */
export const PRIMARY = 'MCP_HOST_PRIMARY'

/** How long who is told to end may take to hear it, milliseconds: what runs then has had its grace. */
export const HEARING_TIME = 10_000
/** How long one may take to end when all of them do, milliseconds: a little less than the 30 s that operators give us. */
export const STOPPING_TIME = 28_000
