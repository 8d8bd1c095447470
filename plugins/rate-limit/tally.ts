// How a request is counted, wherever: in this process (memory-counts.ts), in the primary or in Redis (redis-counts.ts).
import type { Rate } from './options.ts'

/** What is known of one caller in its current window, this request included. */
export interface Tally {
  readonly used: number
  /** When the window ends, by the clock's monotonic time. */
  readonly until: number
}

/** Counts a request of the caller with this key; undefined where it could not be counted and may pass all the same. */
export type Count = (key: string) => Tally | Promise<Tally | undefined>

/** Makes what counts for one limit; `name` tells it from others of the same plugin. */
export type CreateCount = (name: string, rate: Rate) => Count
