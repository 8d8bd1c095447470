// The watchdog thread of a worker: ends the process if the primary is gone and the main thread blocks or does not
// drain.
import { writeSync } from 'node:fs'
import { setInterval } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'
import { CONFIRM_TIMEOUT, STOP_TIMEOUT } from '../message.ts'

const CHECK_INTERVAL = 1_000

const { primary, noticed } = workerData as { readonly primary: number; readonly noticed: Int32Array }

/** Writes to stderr directly, because the main thread can be blocked. */
function kill(why: string): void {
  const line = {
    level: 50,
    time: Date.now(),
    pid: process.pid,
    msg: `ended this worker: its primary process ended, and ${why}`,
  }
  try {
    writeSync(2, `${JSON.stringify(line)}\n`)
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

let waited = 0
for await (const _ of setInterval(CHECK_INTERVAL)) {
  if (process.ppid === primary) continue
  waited += CHECK_INTERVAL
  if (waited > STOP_TIMEOUT) kill('it took too long to drain')
  else if (waited > CONFIRM_TIMEOUT && Atomics.load(noticed, 0) === 0) kill('its event loop is blocked')
}
