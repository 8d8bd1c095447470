// Counts requests in this process, with fixed windows and a limited number of callers.

import { hash, randomBytes } from 'node:crypto'
import type { Rate } from './options.ts'

/** Requests of one caller in the current window, including this one. */
export interface Tally {
  readonly used: number
  /** End of the window, monotonic milliseconds. */
  readonly until: number
}

/** Undefined if the request cannot be counted and passes. */
export type Count = (key: string) => Tally | Promise<Tally | undefined>

/** `name`: unique within a plugin. */
export type CreateCount = (name: string, rate: Rate) => Count

/** Maximum callers with individual counters. */
export const MOST_CALLERS = 100_000
/** Number of shared counters for further callers. */
const SHARED = 4_096
/** Interval of the removal of ended windows, milliseconds. */
const SWEEP = 1_000

type Entry = { -readonly [Name in keyof Tally]: Tally[Name] }

interface MemorySettings {
  /** Milliseconds. */
  readonly window: number
  readonly most?: number
  /** Called when callers start to share counters. */
  readonly full?: () => void
  readonly now?: () => number
}

/** Uses a random seed, so that callers cannot choose a shared counter. */
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
  readonly size: () => number
}

export function createMemoryCount({
  window,
  most = MOST_CALLERS,
  full,
  now = () => performance.now(),
}: MemorySettings): MemoryCount {
  /** Ordered by end time, because all windows have the same length. */
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
      kept.delete(key)
      entry = undefined
    }
    entry ??= begin(key, at)
    entry.used++
    return entry
  }
  return { count: count as MemoryCount['count'], size: () => kept.size }
}
