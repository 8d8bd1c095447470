// Measures the length of event loop turns in the host. Only CPU time of the process counts, so that a busy machine does
// not matter.
import { readFileSync } from 'node:fs'
import { PerformanceObserver, performance } from 'node:perf_hooks'
import type { Stall } from './attacked-settings.ts'

/** Milliseconds. */
export const STALL_LIMIT = 300
const BEAT = 20
/** Garbage collections that are remembered, and names in a report. */
const KEPT_COLLECTIONS = 200
const SHOWN = 6
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
  /** Says that something began in this turn, for the report of a turn that lasts too long. */
  note(what: string): void
  /** The longest turn so far, milliseconds in which the process ran. */
  readonly longest: () => number
  /** Runs something whose time does not count, such as a garbage collection that was asked for. */
  without(task: () => void): void
}

/** `open`: what is under way, for the report of a turn that lasts too long. */
export function probeLoop(stalled: (stall: Stall) => void, open: () => readonly string[]): LoopProbe {
  let last = read()
  let longest = 0
  /** What began since the last beat, by name. */
  let begun = new Map<string, number>()
  const collections: Array<{ readonly start: number; readonly duration: number }> = []
  new PerformanceObserver(list => {
    for (const { startTime, duration } of list.getEntries()) collections.push({ start: startTime, duration })
    collections.splice(0, collections.length - KEPT_COLLECTIONS)
  }).observe({ entryTypes: ['gc'] })

  /** Told a little later: only then it is known how much of it was garbage collection. */
  function report(from: number, to: number, ran: number, what: ReadonlyMap<string, number>) {
    const at = Date.now()
    const inTransit = open()
    setTimeout(() => {
      const within = collections.filter(({ start }) => start >= from && start <= to)
      const collecting = within.reduce((sum, { duration }) => sum + duration, 0)
      const most = [...what].sort(([, a], [, b]) => b - a).slice(0, SHOWN)
      const during = [...most.map(([name, count]) => `${count} ${name}`), ...inTransit].join(', ')
      stalled({ wall: Math.round(to - from), ran: Math.round(ran), collecting: Math.round(collecting), during, at })
    }, BEAT * 2)
  }

  const beat = () => {
    const now = read()
    const ran = ranBetween(last, now)
    const from = last.wall
    const wall = now.wall - from
    const what = begun
    last = now
    if (begun.size > 0) begun = new Map()
    // A short beat costs a turn or two of its own; what it ran says nothing about one turn.
    if (wall < BEAT * 2) return
    longest = Math.max(longest, ran)
    if (ran > STALL_LIMIT) report(from, now.wall, ran, what)
  }
  setInterval(beat, BEAT).unref()
  return {
    note: what => void begun.set(what, (begun.get(what) ?? 0) + 1),
    longest: () => Math.round(longest),
    without(task) {
      beat()
      task()
      last = read()
    },
  }
}
