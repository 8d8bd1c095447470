// Whether the workers that serve still answer: one whose event loop a tool holds for good is missed by nobody else, for new
// connections go to the others. It is said, and in the end another takes its place.
import type { Logger } from '../../core/create-host.ts'
import type { WorkerProcess } from './worker-process.ts'

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
