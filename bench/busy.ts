// How much of the machine others use while something is measured by the clock: on a busy one such a figure says little.
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { CAN_READ_COST, processTree, readCpuSecondsOfAll, TICKS_PER_SECOND } from './process-cost.ts'

/** CPU time that the whole machine used so far, and that was taken from it (steal), seconds. The fields are those of proc(5). */
export function readMachineSeconds(stat = readFileSync('/proc/stat', 'utf8')): number {
  const [, user, nice, system, , , irq, softirq, steal] = (stat.split('\n')[0] ?? '').split(/ +/).map(Number)
  return (
    [user, nice, system, irq, softirq, steal].reduce((sum: number, ticks) => sum + (ticks ?? 0), 0) / TICKS_PER_SECOND
  )
}

/** What this program and all that it started used so far, seconds. */
const readOwnSeconds = () => processTree(process.pid).reduce((sum, pid) => sum + readCpuSecondsOfAll(pid), 0)

/** Begins to watch; what it returns says which part of the machine others used since, 0 to 1, undefined where nobody tells. */
export function watchOthers(): () => number | undefined {
  if (!CAN_READ_COST) return () => undefined
  const read = () => ({ at: performance.now(), others: readMachineSeconds() - readOwnSeconds() })
  const before = read()
  return () => {
    const after = read()
    const most = ((after.at - before.at) / 1000) * availableParallelism()
    return Math.min(1, Math.max(0, (after.others - before.others) / most))
  }
}
