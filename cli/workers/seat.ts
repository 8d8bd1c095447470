// The place of one worker: whoever sits there and dies is followed by another, later each time; a reload seats a new one
// first and sends the old one away when the new one serves.

import type { Logger } from '../../core/create-host.ts'
import type { Serving } from './message.ts'
import { endInTime, type WorkerEnd, type WorkerProcess } from './worker-process.ts'

/** How long a worker that was replaced may take to drain before it is ended, milliseconds. */
const RETIRE_TIME = 60_000

export interface SeatSettings {
  readonly start: () => WorkerProcess
  readonly log: Logger
  /** How many workers serve now, on all seats. */
  readonly serving: () => number
  /** Called when a worker serves in the place of one that died. */
  readonly refilled: () => void
}

export interface Seat {
  /** The process that serves here; undefined where none does at the moment. */
  readonly pid: number | undefined
  /** What that serves. */
  readonly now: Serving | undefined
  /** Every process of this seat that has not ended yet: the one that serves, one that starts, one that drains. */
  readonly processes: ReadonlySet<WorkerProcess>
  /** Seats a worker once it serves; one that cannot is followed by another. Resolves with what it serves. */
  fill(worker: WorkerProcess): Promise<Serving | undefined>
  /**
   * Starts a new worker and, once it serves, drains the one before. Resolves when that one has ended: with what the new
   * one serves, or with how it failed; then nothing has changed.
   */
  replace(): Promise<{ serving: Serving } | { end: WorkerEnd }>
  /** Ends a replacement that does not serve yet. */
  giveUp(): void
  /** Nobody is seated any more. */
  close(): void
}

export function createSeat({ start, log, serving, refilled }: SeatSettings): Seat {
  const backOff = createBackOff()
  const processes = new Set<WorkerProcess>()
  let seated: { worker: WorkerProcess; since: number } | undefined
  let candidate: WorkerProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function track(worker: WorkerProcess) {
    processes.add(worker)
    void worker.ended.then(() => processes.delete(worker))
  }

  /** Whoever sits here from now on is followed by another when it dies. */
  function seat(worker: WorkerProcess) {
    const place = { worker, since: Date.now() }
    seated = place
    watchPulse(worker, log)
    void worker.ended.then(end => {
      if (seated !== place) return
      seated = undefined
      startAgain(worker, end, Date.now() - place.since)
    })
    // It drains: another need not wait for that.
    void worker.failing.then(problem => {
      if (seated !== place) return
      seated = undefined
      startAgain(worker, { code: null, signal: null, problem }, Date.now() - place.since, 'a worker failed')
      void endInTime(worker, undefined, RETIRE_TIME, log)
    })
  }

  /** `served` in milliseconds; undefined where the worker could not start. */
  function startAgain(
    { pid }: WorkerProcess,
    end: WorkerEnd,
    served?: number,
    what = served === undefined ? 'a worker could not start' : 'a worker ended',
  ) {
    if (closed) return
    const { code, signal, problem } = end
    const wait = backOff.next(served ?? 0)
    const left = serving()
    const next = wait < LONGEST_WAIT ? 'another is started' : `they keep ending: one is tried every ${wait / 1000} s`
    log.error(
      { worker: pid, code, signal, ...(problem !== undefined && { problem }), wait, serving: left },
      `${what}; ${left === 0 ? 'none is left to serve; ' : ''}${next}`,
    )
    timer = setTimeout(() => void fillAgain(), wait)
  }

  async function fillAgain() {
    const worker = start()
    const now = await fill(worker)
    if (!now) return
    log.info({ worker: worker.pid, url: now.url, serving: serving() }, 'a worker serves')
    refilled()
  }

  async function fill(worker: WorkerProcess): Promise<Serving | undefined> {
    track(worker)
    const now = await worker.ready
    // Meanwhile a reload has seated another, or everything ends.
    if (seated || closed) {
      void endInTime(worker, { mcpHost: 'retire' }, RETIRE_TIME, log)
      return undefined
    }
    if (now) seat(worker)
    else startAgain(worker, await worker.ended)
    return now
  }

  return {
    get pid() {
      return seated?.worker.pid
    },
    get now() {
      return seated?.worker.serving
    },
    processes,
    fill,
    async replace() {
      const worker = start()
      track(worker)
      candidate = worker
      const now = await worker.ready
      candidate = undefined
      if (!now) return { end: await worker.ended }
      clearTimeout(timer)
      const before = seated?.worker
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

/** The wait after the first end, milliseconds; it doubles with each further one. */
const FIRST_WAIT = 100
export const LONGEST_WAIT = 30_000
/** Who served for so long is not part of a crash loop, milliseconds. */
export const STABLE_TIME = 30_000

export interface BackOff {
  /**
   * Counts one end and says how long to wait, milliseconds. `served` is how long the worker had been ready; 0 when it
   * never was.
   */
  next(served: number): number
}

export function createBackOff(): BackOff {
  let ends = 0
  return {
    next(served) {
      ends = served >= STABLE_TIME ? 1 : ends + 1
      return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (ends - 1))
    },
  }
}

/** Between two looks, milliseconds. */
const INTERVAL = 2_000
/** Looks without an answer until it is said, and until the worker is ended: not by the clock, for a machine that slept is not late. */
const SAID_AFTER = 10
const ENDED_AFTER = 30

const seconds = (looks: number) => (looks * INTERVAL) / 1_000

/** Until it ends. */
export function watchPulse(worker: WorkerProcess, log: Logger): void {
  let missed = 0
  function look() {
    if (worker.isAwake()) {
      if (missed >= SAID_AFTER) log.warn({ worker: worker.pid, seconds: seconds(missed) }, 'a worker answers again')
      missed = 0
      return
    }
    missed++
    if (missed === SAID_AFTER) log.error({ worker: worker.pid, seconds: seconds(missed), fix: FIX }, SILENT)
    if (missed === ENDED_AFTER) {
      log.error({ worker: worker.pid, seconds: seconds(missed) }, 'killed a worker: it does not answer any more')
      worker.kill()
    }
  }
  const timer = setInterval(look, INTERVAL).unref()
  void worker.ended.then(() => clearInterval(timer))
}

const SILENT = `a worker does not answer: something holds up its event loop, and whoever is connected to it; after ${seconds(ENDED_AFTER)} s it is replaced`
const FIX =
  'the access log shows the last calls of this worker; with `isolate: true` a tool runs in another process and is ended at its limit'
