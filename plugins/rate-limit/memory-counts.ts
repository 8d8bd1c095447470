// Counts requests in this process, with fixed windows and a limited number of callers.

import { hash, randomBytes } from 'node:crypto'
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

/** Callers that one limit counts one by one. */
export const MOST_CALLERS = 100_000
/** What those past it share. */
const SHARED = 4_096
/** How often windows that ended are looked for, milliseconds. */
const SWEEP = 1_000

type Entry = { -readonly [Name in keyof Tally]: Tally[Name] }

interface MemorySettings {
  /** Milliseconds. */
  readonly window: number
  readonly most?: number
  /** Hears when callers begin to share counters. */
  readonly full?: () => void
  readonly now?: () => number
}

/** Callers by chance: nobody outside can choose whose counter is theirs. */
function createShared(window: number) {
  const seed = randomBytes(16).toString('base64url')
  const entries = new Map<number, Entry>()
  return (key: string, at: number): Entry => {
    const slot = Number.parseInt(hash('sha256', seed + key, 'hex').slice(0, 8), 16) % SHARED
    const known = entries.get(slot)
    if (known && known.until > at) return known
    const entry = { used: 0, until: at + window }
    entries.set(slot, entry)
    return entry
  }
}

interface MemoryCount {
  readonly count: (key: string) => Tally
  /** Counters that are kept. */
  readonly size: () => number
}

export function createMemoryCount({
  window,
  most = MOST_CALLERS,
  full,
  now = () => performance.now(),
}: MemorySettings): MemoryCount {
  /** In the order in which they end: all last as long. */
  const kept = new Map<string, Entry>()
  const share = createShared(window)
  let sweepAt = 0
  let isFull = false

  function sweep(at: number) {
    if (at < sweepAt) return
    sweepAt = at + SWEEP
    for (const [key, { until }] of kept) {
      if (until > at) break
      kept.delete(key)
    }
    if (kept.size < most) isFull = false
  }

  function begin(key: string, at: number): Entry {
    sweep(at)
    if (kept.size >= most) {
      if (!isFull) full?.()
      isFull = true
      return share(key, at)
    }
    const entry = { used: 0, until: at + window }
    kept.set(key, entry)
    return entry
  }

  const count: Count = key => {
    const at = now()
    let entry = kept.get(key)
    if (entry && entry.until <= at) {
      // It begins anew at the end of the order.
      kept.delete(key)
      entry = undefined
    }
    entry ??= begin(key, at)
    entry.used++
    return entry
  }
  return { count: count as MemoryCount['count'], size: () => kept.size }
}
