// One of N worker slots. A dead worker is replaced after a delay; a reload starts the next worker before it retires the current
// one.
import type { Logger } from '../../core/kernel/log.ts'
import type { Serving } from './message.ts'
import { stopWorker, type WorkerEnd, type WorkerProcess } from './worker-process.ts'

/** Time limit for a replaced worker to drain, milliseconds. */
const RETIRE_TIME = 60_000

/** Delay after the first death, milliseconds; doubled after each further one. */
const INITIAL_DELAY = 100
export const MAX_DELAY = 30_000
/** A worker that served for this time, in milliseconds, is not part of a crash loop. */
export const STABLE_TIME = 30_000

/** Creates a function that returns the delay before the next start. `served`: milliseconds that the worker served. */
export function createBackOff(): (served: number) => number {
  let deaths = 0
  return served => {
    deaths = served >= STABLE_TIME ? 1 : deaths + 1
    return Math.min(MAX_DELAY, INITIAL_DELAY * 2 ** (deaths - 1))
  }
}

/** Interval between checks of a worker's event loop, milliseconds. */
const CHECK_INTERVAL = 2_000
/** Missed checks until a warning, and until the worker is killed. Counts checks instead of time, because a machine can sleep. */
const WARN_AFTER = 10
const KILL_AFTER = 30

const seconds = (checks: number) => (checks * CHECK_INTERVAL) / 1_000

const BLOCKED = `A worker does not respond: its event loop is blocked; after ${seconds(KILL_AFTER)} s it is replaced`
const FIX =
  'see the last calls of this worker in the access log; with `isolate: true` a tool runs in its own process, with limits'

function watchEventLoop(worker: WorkerProcess, log: Logger): void {
  let missed = 0
  const timer = setInterval(() => {
    const fields = { worker: worker.pid, seconds: seconds(missed + 1) }
    if (worker.isResponsive()) {
      if (missed >= WARN_AFTER)
        log.warn({ code: 'MH3121', worker: worker.pid, seconds: seconds(missed) }, 'a worker responds again')
      missed = 0
      return
    }
    missed++
    if (missed === WARN_AFTER) log.error({ code: 'MH3122', ...fields, fix: FIX }, BLOCKED)
    if (missed === KILL_AFTER) {
      log.error({ code: 'MH3123', ...fields }, 'killed a worker: it does not respond')
      worker.kill()
    }
  }, CHECK_INTERVAL).unref()
  void worker.ended.then(() => clearInterval(timer))
}

interface SlotOptions {
  readonly start: () => WorkerProcess
  readonly log: Logger
  readonly serving: () => number
  readonly onRefilled: () => void
}

export type WorkerSlot = ReturnType<typeof createSlot>

export function createSlot({ start, log, serving, onRefilled }: SlotOptions) {
  const nextDelay = createBackOff()
  const processes = new Set<WorkerProcess>()
  let current: WorkerProcess | undefined
  let candidate: WorkerProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function track(worker: WorkerProcess) {
    processes.add(worker)
    void worker.ended.then(() => processes.delete(worker))
  }

  function activate(worker: WorkerProcess) {
    const since = Date.now()
    current = worker
    watchEventLoop(worker, log)
    void worker.ended.then(end => {
      if (current !== worker) return
      current = undefined
      restartLater(worker, end, 'a worker ended', Date.now() - since)
    })
    void worker.failing.then(problem => {
      if (current !== worker) return
      current = undefined
      restartLater(worker, { code: null, signal: null, problem }, 'a worker failed', Date.now() - since)
      void stopWorker(worker, undefined, RETIRE_TIME, log)
    })
  }

  function restartLater({ pid }: WorkerProcess, { code, signal, problem }: WorkerEnd, what: string, served = 0) {
    if (closed) return
    const delay = nextDelay(served)
    const remaining = serving()
    const next =
      delay < MAX_DELAY ? 'another is started' : `workers keep ending: a start is tried every ${delay / 1000} s`
    log.error(
      { code: 'MH3124', worker: pid, exitCode: code, signal, problem, wait: delay, serving: remaining },
      `${what}; ${remaining === 0 ? 'no worker is left; ' : ''}${next}`,
    )
    timer = setTimeout(async () => {
      const worker = start()
      const info = await fill(worker)
      if (!info) return
      log.info({ code: 'MH3125', worker: worker.pid, url: info.url, serving: serving() }, 'a worker serves')
      onRefilled()
    }, delay)
  }

  /** Takes a worker once it serves; if its startup fails, starts another one. */
  async function fill(worker: WorkerProcess): Promise<Serving | undefined> {
    track(worker)
    const info = await worker.ready
    // A reload has already started another worker, or all are stopping.
    if (current || closed) {
      void stopWorker(worker, { mcpHost: 'retire' }, RETIRE_TIME, log)
      return undefined
    }
    if (info) activate(worker)
    else restartLater(worker, await worker.ended, 'a worker could not start')
    return info
  }

  return {
    get pid() {
      return current?.pid
    },
    get info() {
      return current?.serving
    },
    processes,
    fill,
    /** Starts a new worker, then drains the current one. Resolves after that, or with the failure of the new worker. */
    async replace(): Promise<{ serving: Serving } | { end: WorkerEnd }> {
      const worker = start()
      track(worker)
      candidate = worker
      const info = await worker.ready
      candidate = undefined
      if (!info) return { end: await worker.ended }
      clearTimeout(timer)
      const previous = current
      activate(worker)
      if (previous) await stopWorker(previous, { mcpHost: 'retire' }, RETIRE_TIME, log)
      return { serving: info }
    },
    cancelReplacement: () => candidate?.kill(),
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
