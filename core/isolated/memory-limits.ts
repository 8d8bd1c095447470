// What V8 itself is told about the memory of threads: how much it may give them, and to leave every loop interruptible.
import { totalmem } from 'node:os'
import { setFlagsFromString } from 'node:v8'

const MEGABYTE = 1_024 ** 2
/** Beyond a thread's bound, megabytes: half of what there is, within these. */
const LEAST_BEYOND = 256
const MOST_BEYOND = 3_072

/** Bytes of memory for this process: the machine's, or what its container may take. */
function memoryThereIs(): number {
  const allowed = process.constrainedMemory()
  return allowed > 0 ? Math.min(allowed, totalmem()) : totalmem()
}

/**
 * V8's own limit for the heap of a thread, megabytes. It is beyond the thread's bound where somebody looks at what the thread
 * holds: at its own, V8 ends the process where a single allocation is larger than what is left. Nothing is taken for it.
 */
export function heapLimit(memory: number, isLookedAt: boolean, thereIs = memoryThereIs()): number {
  const half = Math.round(thereIs / 2 / MEGABYTE)
  const beyond = isLookedAt ? Math.max(LEAST_BEYOND, Math.min(MOST_BEYOND, half)) : 0
  return Math.round(memory / MEGABYTE) + beyond
}

/** The first V8 (Node 24) whose compiler drops the check from a loop around `new Array(1000).fill(0)` as it unrolls the inner one. */
const FIRST_WITHOUT_CHECKS = 13

/**
 * Has V8 compile no loop from which nothing calls a thread back: neither a question of the inspector nor `terminate()` would
 * reach it, and at its limit V8 ends the process. Holds for what is compiled from now on, in all threads.
 */
export function keepLoopsInterruptible(): void {
  const version = Number.parseInt(process.versions.v8, 10)
  if (version >= FIRST_WITHOUT_CHECKS) setFlagsFromString('--no-turboshaft-loop-unrolling')
}

/** What the whole process holds, and what all threads that run a call may hold together, bytes. */
export interface Whole {
  readonly size: number
  readonly allowed: number
}
