// A clock that only the test advances. For `createHost(config, { clock })` and everything that takes a `Clock`.
import { setImmediate as turn } from 'node:timers/promises'
import type { Clock, Timer } from '../../core/http/clock.ts'

interface Pending extends Timer {
  readonly task: () => void
  readonly every: number | undefined
  due: number
}

export interface ManualClock extends Clock {
  /**
   * Moves the time forward. Due timers run in the order of their times; after each one, and at the end, pending promises and
   * I/O that is ready are handled. The process's own I/O that is still under way is not waited for: await its event first.
   */
  advance(milliseconds: number): Promise<void>
  /** Advances the time without running timers, as code that blocks the event loop does. */
  block(milliseconds: number): void
  /** Milliseconds until each pending timer is due, the next one first. */
  pending(): number[]
}

/** Turns of the event loop after each timer. */
const TURNS = 3

/** Starts at the system's time, because tokens and certificates are judged by it. */
export function createManualClock(start = Date.now()): ManualClock {
  const timers = new Set<Pending>()
  let time = 0

  function add(task: () => void, milliseconds: number, every?: number): Pending {
    const timer: Pending = { task, every, due: time + Math.max(1, milliseconds), unref: () => timer }
    timers.add(timer)
    return timer
  }

  const inOrder = () => [...timers].sort((one, other) => one.due - other.due)

  async function settle() {
    for (let count = 0; count < TURNS; count++) await turn()
  }

  return {
    now: () => start + time,
    monotonic: () => time,
    setTimeout: (task, milliseconds) => add(task, milliseconds),
    setInterval: (task, milliseconds) => add(task, milliseconds, Math.max(1, milliseconds)),
    clear: timer => void timers.delete(timer as Pending),
    async advance(milliseconds) {
      const end = time + milliseconds
      for (let [next] = inOrder(); next && next.due <= end; [next] = inOrder()) {
        time = Math.max(time, next.due)
        if (next.every === undefined) timers.delete(next)
        else next.due += next.every
        next.task()
        await settle()
      }
      time = end
      await settle()
    },
    block(milliseconds) {
      time += milliseconds
    },
    pending: () => inOrder().map(({ due }) => due - time),
  }
}
