// The settings that the test program sends to the attacked host, and the reports that the host returns.
import type { Markers } from './target.ts'

/** Faults that tests plant to see that a verdict finds them. */
export const PLANTS = [
  'crash',
  'stall',
  'leak',
  'descriptor',
  'timer',
  'session',
  'running',
  'secret',
  'foreign',
  'error',
  'hang',
  'wrong',
] as const
export type Plant = (typeof PLANTS)[number]

export interface AttackedSettings {
  readonly issuer: string
  readonly audience: string
  readonly markers: Markers
  readonly plants: readonly Plant[]
  /** Without `configureSession` and `runSession`: what is served to many is then built once for all of them. */
  readonly plain: boolean
}

/** The environment variable that carries them, as JSON. */
export const SETTINGS = 'HOSTILE_SETTINGS'

/** What the host holds. All of it is to be as it was, once nobody calls any more. */
export interface Holding {
  readonly sessions: number
  /** `runSession`s that did not end. */
  readonly runs: number
  /** Who would be told of changes. */
  readonly subscribers: number
  /** JSON-RPC messages that are being answered. */
  readonly calls: number
  readonly sockets: number
  readonly descriptors: number
  readonly timers: number
  /** Bytes, after garbage collection where it was asked for. */
  readonly heap: number
  readonly rss: number
  /** The most that was resident so far, bytes. */
  readonly peakRss: number
}

export interface Stall {
  /** Milliseconds between two turns of the event loop, and how many of them the process was running. */
  readonly wall: number
  readonly ran: number
  /** Of the clock's milliseconds, those of garbage collection. */
  readonly collecting: number
  /** What began in it, most often first. */
  readonly during: string
  /** When it was over, milliseconds since the epoch. */
  readonly at: number
}

export type Report =
  | { readonly kind: 'stall'; readonly stall: Stall }
  | { readonly kind: 'longest'; readonly ran: number }
  | { readonly kind: 'holding'; readonly holding: Holding }

export type Question = { readonly ask: 'holding'; readonly collect: boolean } | { readonly ask: 'longest' }
