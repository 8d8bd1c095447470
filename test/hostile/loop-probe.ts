// Measures, inside the host, how long one turn of its event loop keeps everybody waiting. Only time in which the process
// itself was running counts: on a busy machine the scheduler's pauses are none of ours.
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import type { Stall } from './attacked-settings.ts'

/** Milliseconds. */
export const STALL_LIMIT = 200
const BEAT = 20
/** What the kernel counts threads' time in, milliseconds. */
const TICK = 10

interface Reading {
  readonly wall: number
  /** Of all threads. */
  readonly process: number
  /** Of the thread that runs the loop; Infinity where the system does not say. */
  readonly thread: number
  readonly loop: ReturnType<typeof performance.eventLoopUtilization>
}

/** Milliseconds that the main thread ran. */
function threadTime(): number {
  try {
    const fields = readFileSync(`/proc/self/task/${process.pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    const [user, system] = [Number(fields[11]), Number(fields[12])]
    return Number.isFinite(user + system) ? (user + system) * TICK : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function read(): Reading {
  const { user, system } = process.cpuUsage()
  return {
    wall: performance.now(),
    process: (user + system) / 1_000,
    thread: threadTime(),
    loop: performance.eventLoopUtilization(),
  }
}

/** Milliseconds between two readings in which the loop was busy and its thread on a core. */
function ranBetween(before: Reading, after: Reading): number {
  const thread = after.thread - before.thread
  return Math.min(
    after.wall - before.wall,
    after.process - before.process,
    performance.eventLoopUtilization(after.loop, before.loop).active,
    Number.isFinite(thread) ? thread + TICK : Number.POSITIVE_INFINITY,
  )
}

export interface LoopProbe {
  /** The longest turn so far, milliseconds in which the process ran. */
  readonly longest: () => number
  /** Runs something whose time does not count, such as a garbage collection that was asked for. */
  without(task: () => void): void
}

export function probeLoop(stalled: (stall: Stall) => void): LoopProbe {
  let last = read()
  let longest = 0
  const beat = () => {
    const now = read()
    const ran = ranBetween(last, now)
    const wall = now.wall - last.wall
    last = now
    // A short beat costs a turn or two of its own; what it ran says nothing about one turn.
    if (wall < BEAT * 2) return
    longest = Math.max(longest, ran)
    if (ran > STALL_LIMIT) stalled({ wall: Math.round(wall), ran: Math.round(ran), at: Date.now() })
  }
  setInterval(beat, BEAT).unref()
  return {
    longest: () => Math.round(longest),
    without(task) {
      beat()
      task()
      last = read()
    },
  }
}
