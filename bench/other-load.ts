// Measures the CPU time of other processes during a benchmark. On a busy machine, wall-clock times are not reliable.
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { HAS_PROC, listProcessTree, readTotalCpuSeconds, TICKS_PER_SECOND } from './process-stats.ts'

/** CPU time used by all processes and by other virtual machines (steal), in seconds. Fields: see proc(5). */
export function readMachineCpuSeconds(stat = readFileSync('/proc/stat', 'utf8')): number {
  const [, user, nice, system, , , irq, softirq, steal] = (stat.split('\n')[0] ?? '').split(/ +/).map(Number)
  return (
    [user, nice, system, irq, softirq, steal].reduce((sum: number, ticks) => sum + (ticks ?? 0), 0) / TICKS_PER_SECOND
  )
}

/** CPU time used by this process and its descendants, in seconds. */
const readOwnCpuSeconds = () => listProcessTree(process.pid).reduce((sum, pid) => sum + readTotalCpuSeconds(pid), 0)

/** The returned function reads the share of CPU time used by other processes since, 0 to 1. Undefined without /proc. */
export function trackOtherLoad(): () => number | undefined {
  if (!HAS_PROC) return () => undefined
  const read = () => ({ at: performance.now(), others: readMachineCpuSeconds() - readOwnCpuSeconds() })
  const before = read()
  return () => {
    const after = read()
    const available = ((after.at - before.at) / 1000) * availableParallelism()
    return Math.min(1, Math.max(0, (after.others - before.others) / available))
  }
}
