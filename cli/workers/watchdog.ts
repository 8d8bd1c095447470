// A worker ends with its primary, even one whose event loop a tool holds up: a thread of its own looks whether the primary
// is still the parent, and kills the process where it does not end by itself.
import { Worker } from 'node:worker_threads'
import { HEARING_TIME, STOPPING_TIME } from './message.ts'

/** How often it looks, milliseconds. */
const LOOK_INTERVAL = 1_000

/** Plain JavaScript, so that no loader is started in the thread. It writes to the log itself: the main thread may hang. */
const THREAD = `
const { workerData } = require('node:worker_threads')
const { writeSync } = require('node:fs')
const { primary, heard, hearing, stopping, interval } = workerData
let orphaned
function kill(why) {
  const line = { level: 50, time: Date.now(), pid: process.pid, msg: 'ended this worker: its primary is gone, and ' + why }
  try {
    writeSync(2, JSON.stringify(line) + '\\n')
  } catch {}
  process.kill(process.pid, 'SIGKILL')
}
setInterval(() => {
  if (process.ppid === primary) return
  orphaned ??= performance.now()
  const waited = performance.now() - orphaned
  if (waited > stopping) kill('it took too long to drain')
  else if (waited > hearing && Atomics.load(heard, 0) === 0) kill('something holds up its event loop')
}, interval)
`

export interface Watchdog {
  /** The main thread knows that the primary is gone. */
  heard(): void
}

/** `primary`: its process id. Its patience is that of the primary itself when it stops. */
export function startWatchdog(primary: number): Watchdog {
  const heard = new Int32Array(new SharedArrayBuffer(4))
  const workerData = { primary, heard, hearing: HEARING_TIME, stopping: STOPPING_TIME, interval: LOOK_INTERVAL }
  const thread = new Worker(THREAD, {
    eval: true,
    // What this process was started with, such as a loader, is nothing to it.
    execArgv: [],
    env: {},
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 16 },
  })
  thread.unref()
  return { heard: () => void Atomics.store(heard, 0, 1) }
}
