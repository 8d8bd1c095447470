// The clock of a host: time and timers, which tests can replace.

/** A pending timer of a `Clock`. */
export interface Timer {
  unref(): this
}

/** The time and timers of a host. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds since an arbitrary start. Changes of the system clock do not affect them. */
  monotonic(): number
  setTimeout(task: () => void, milliseconds: number): Timer
  setInterval(task: () => void, milliseconds: number): Timer
  /** Cancels a timer of either kind; undefined and timers that have ended are ignored. */
  clear(timer: Timer | undefined): void
}

/** Reads the globals at each call, because tests replace them. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (task, milliseconds) => setTimeout(task, milliseconds),
  setInterval: (task, milliseconds) => setInterval(task, milliseconds),
  clear: timer => clearTimeout(timer as NodeJS.Timeout | undefined),
}

/**
 * Resolves to the result of `awaited`, or to that of `onTimeout` after `limit` milliseconds. A result that arrived in time
 * counts even if the event loop was blocked.
 */
export async function withTimeout<Value, Fallback>(
  awaited: Promise<Value>,
  limit: number,
  onTimeout: () => Fallback,
  clock = systemClock,
): Promise<Value | Fallback> {
  let timer: Timer | undefined
  const timeout = new Promise<void>(resolve => {
    timer = clock.setTimeout(() => void setImmediate(resolve), limit)
  })
  try {
    return await Promise.race([awaited, timeout.then(onTimeout)])
  } finally {
    clock.clear(timer)
  }
}
