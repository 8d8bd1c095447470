// What a process has used so far, from Linux's /proc; other systems do not tell, and rows then count wall-clock time.
import { existsSync, readFileSync } from 'node:fs'

/** Linux reports CPU time in these to every process, whatever its own timer runs at (proc(5), USER_HZ). */
const TICKS_PER_SECOND = 100

export const CAN_READ_COST = existsSync('/proc/self/stat')

/** User and system time of all threads of a process, seconds. */
export function readCpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field, the program's name in brackets, may hold anything: count from its end. utime and stime are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** The memory that a process has resident now, bytes. */
export function readRss(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** The most memory that a process ever had resident, bytes. */
export function readPeakRss(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
