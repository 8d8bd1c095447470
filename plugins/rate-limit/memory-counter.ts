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
export type Counter = (key: string) => Tally | Promise<Tally | undefined>

/** `name`: unique within a plugin. */
export type CreateCounter = (name: string, rate: Rate) => Counter

export const MAX_CALLERS = 100_000
const SHARED_COUNTERS = 4_096
/** Interval of the removal of ended windows, milliseconds. */
const SWEEP_INTERVAL = 1_000

type Entry = { -readonly [Name in keyof Tally]: Tally[Name] }

interface MemorySettings {
  /** Milliseconds. */
  readonly window: number
  readonly maxCallers?: number
  /** Called when callers start to share counters. */
  readonly onFull?: () => void
  readonly now?: () => number
}

/** Uses a random seed, so that callers cannot choose a shared counter. */
function createSharedCounters(window: number) {
  const seed = randomBytes(16).toString('base64url')
  const entries = new Map<number, Entry>()
  return (key: string, at: number): Entry => {
    const slot = Number.parseInt(hash('sha256', seed + key, 'hex').slice(0, 8), 16) % SHARED_COUNTERS
    const existing = entries.get(slot)
    if (existing && existing.until > at) return existing
    const entry = { used: 0, until: at + window }
    entries.set(slot, entry)
    return entry
  }
}

interface MemoryCounter {
  readonly count: (key: string) => Tally
  readonly size: () => number
}

export function createMemoryCounter({
  window,
  maxCallers = MAX_CALLERS,
  onFull,
  now = () => performance.now(),
}: MemorySettings): MemoryCounter {
  /** Ordered by end time, because all windows have the same length. */
  const counters = new Map<string, Entry>()
  const sharedEntry = createSharedCounters(window)
  let sweepAt = 0
  let isFull = false

  function sweep(at: number) {
    if (at < sweepAt) return
    sweepAt = at + SWEEP_INTERVAL
    for (const [key, { until }] of counters) {
      if (until > at) break
      counters.delete(key)
    }
    if (counters.size < maxCallers) isFull = false
  }

  function startWindow(key: string, at: number): Entry {
    sweep(at)
    if (counters.size >= maxCallers) {
      if (!isFull) onFull?.()
      isFull = true
      return sharedEntry(key, at)
    }
    const entry = { used: 0, until: at + window }
    counters.set(key, entry)
    return entry
  }

  const count: Counter = key => {
    const at = now()
    let entry = counters.get(key)
    if (entry && entry.until <= at) {
      counters.delete(key)
      entry = undefined
    }
    entry ??= startWindow(key, at)
    entry.used++
    return entry
  }
  return { count: count as MemoryCounter['count'], size: () => counters.size }
}
