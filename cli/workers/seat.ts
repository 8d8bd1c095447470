// One of N worker slots. A dead worker is replaced after a delay; a reload starts the next worker before it retires the current
// one.
import type { Logger } from '../../core/kernel/log.ts'
import type { Serving } from './message.ts'
import { endInTime, type WorkerEnd, type WorkerProcess } from './worker-process.ts'

/** Time limit for a replaced worker to drain, milliseconds. */
const RETIRE_TIME = 60_000

/** Delay after the first death, milliseconds; doubled after each further one. */
const FIRST_WAIT = 100
export const LONGEST_WAIT = 30_000
/** A worker that served for this time, in milliseconds, is not part of a crash loop. */
export const STABLE_TIME = 30_000

/** Creates a function that returns the delay before the next start. `served`: milliseconds that the worker served. */
export function createBackOff(): (served: number) => number {
  let ends = 0
  return served => {
    ends = served >= STABLE_TIME ? 1 : ends + 1
    return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (ends - 1))
  }
}

/** Interval between checks of a worker's event loop, milliseconds. */
const PULSE_INTERVAL = 2_000
/** Missed checks until a warning, and until the worker is killed. Counts checks instead of time, because a machine can sleep. */
const LOGGED_AFTER = 10
const KILLED_AFTER = 30

const seconds = (checks: number) => (checks * PULSE_INTERVAL) / 1_000

const SILENT = `A worker does not respond: its event loop is blocked; after ${seconds(KILLED_AFTER)} s it is replaced`
const FIX =
  'see the last calls of this worker in the access log; with `isolate: true` a tool runs in its own process, with limits'

function watchPulse(worker: WorkerProcess, log: Logger): void {
  let missed = 0
  const timer = setInterval(() => {
    const fields = { worker: worker.pid, seconds: seconds(missed + 1) }
    if (worker.isAwake()) {
      if (missed >= LOGGED_AFTER)
        log.warn({ code: 'MH3121', worker: worker.pid, seconds: seconds(missed) }, 'a worker responds again')
      missed = 0
      return
    }
    missed++
    if (missed === LOGGED_AFTER) log.error({ code: 'MH3122', ...fields, fix: FIX }, SILENT)
    if (missed === KILLED_AFTER) {
      log.error({ code: 'MH3123', ...fields }, 'killed a worker: it does not respond')
      worker.kill()
    }
  }, PULSE_INTERVAL).unref()
  void worker.ended.then(() => clearInterval(timer))
}

interface SeatSettings {
  readonly start: () => WorkerProcess
  readonly log: Logger
  readonly serving: () => number
  readonly refilled: () => void
}

export type Seat = ReturnType<typeof createSeat>

export function createSeat({ start, log, serving, refilled }: SeatSettings) {
  const nextWait = createBackOff()
  const processes = new Set<WorkerProcess>()
  let seated: WorkerProcess | undefined
  let candidate: WorkerProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function track(worker: WorkerProcess) {
    processes.add(worker)
    void worker.ended.then(() => processes.delete(worker))
  }

  function seat(worker: WorkerProcess) {
    const since = Date.now()
    seated = worker
    watchPulse(worker, log)
    void worker.ended.then(end => {
      if (seated !== worker) return
      seated = undefined
      startAgain(worker, end, 'a worker ended', Date.now() - since)
    })
    void worker.failing.then(problem => {
      if (seated !== worker) return
      seated = undefined
      startAgain(worker, { code: null, signal: null, problem }, 'a worker failed', Date.now() - since)
      void endInTime(worker, undefined, RETIRE_TIME, log)
    })
  }

  function startAgain({ pid }: WorkerProcess, { code, signal, problem }: WorkerEnd, what: string, served = 0) {
    if (closed) return
    const wait = nextWait(served)
    const left = serving()
    const next =
      wait < LONGEST_WAIT ? 'another is started' : `workers keep ending: a start is tried every ${wait / 1000} s`
    log.error(
      { code: 'MH3124', worker: pid, exitCode: code, signal, problem, wait, serving: left },
      `${what}; ${left === 0 ? 'no worker is left; ' : ''}${next}`,
    )
    timer = setTimeout(async () => {
      const worker = start()
      const now = await fill(worker)
      if (!now) return
      log.info({ code: 'MH3125', worker: worker.pid, url: now.url, serving: serving() }, 'a worker serves')
      refilled()
    }, wait)
  }

  /** Takes a worker once it serves; if its startup fails, starts another one. */
  async function fill(worker: WorkerProcess): Promise<Serving | undefined> {
    track(worker)
    const now = await worker.ready
    // A reload has already started another worker, or all are stopping.
    if (seated || closed) {
      void endInTime(worker, { mcpHost: 'retire' }, RETIRE_TIME, log)
      return undefined
    }
    if (now) seat(worker)
    else startAgain(worker, await worker.ended, 'a worker could not start')
    return now
  }

  return {
    get pid() {
      return seated?.pid
    },
    get now() {
      return seated?.serving
    },
    processes,
    fill,
    /** Starts a new worker, then drains the current one. Resolves after that, or with the failure of the new worker. */
    async replace(): Promise<{ serving: Serving } | { end: WorkerEnd }> {
      const worker = start()
      track(worker)
      candidate = worker
      const now = await worker.ready
      candidate = undefined
      if (!now) return { end: await worker.ended }
      clearTimeout(timer)
      const before = seated
      seat(worker)
      if (before) await endInTime(before, { mcpHost: 'retire' }, RETIRE_TIME, log)
      return { serving: now }
    },
    giveUp: () => candidate?.kill(),
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
