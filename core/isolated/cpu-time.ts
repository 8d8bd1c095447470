// How long a thread has computed: as Linux counts it for the thread, elsewhere the time in which its event loop did not wait.
import { readFileSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import type { CallUsage } from '../mcp/replayed-asks.ts'

/** Nanoseconds on a processor are the first number there. */
const fromSystem = (task: string): number | undefined => {
  try {
    return Number.parseInt(readFileSync(`/proc/self/task/${task}/schedstat`, 'latin1'), 10) / 1e6
  } catch {
    return undefined
  }
}

/** Milliseconds since the thread began. `task`: its number at the system. */
function computedBy(worker: Worker, task: string | undefined): number {
  const exact = task === undefined ? undefined : fromSystem(task)
  return exact !== undefined && exact > 0 ? exact : worker.performance.eventLoopUtilization().active
}

/** Returns a function that adds to `used` what the thread has computed since the previous time that it was called. */
export function createTimeCount(worker: Worker, task: string | undefined, used: CallUsage): () => void {
  let before: number | undefined
  return () => {
    const computed = computedBy(worker, task)
    used.cpuTime += Math.max(0, computed - (before ?? computed))
    before = computed
  }
}
