// Reads the CPU time and memory of processes from Linux's /proc. On other systems, rows count wall-clock time instead.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** The unit of CPU times in /proc, independent of the kernel's timer frequency (proc(5), USER_HZ). */
export const TICKS_PER_SECOND = 100

export const HAS_PROC = existsSync('/proc/self/stat')

/** The fields of /proc/<pid>/stat from the third on. Undefined if the process has ended. */
function readStat(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field, the program name in parentheses, can contain any character: start after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** A process and all its descendants. */
export function listProcessTree(pid: number): number[] {
  const pids = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
  const parents = new Map(pids.map(id => [id, Number(readStat(id)?.[1])]))
  const isInTree = (id: number | undefined): boolean =>
    id === pid || (id !== undefined && id > 1 && isInTree(parents.get(id)))
  return pids.filter(isInTree)
}

/** The program and its arguments, separated by spaces. Empty if the process has ended. */
export function readCommandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

/** User and system time of all threads of a process, in seconds. */
export function readCpuSeconds(pid: number): number {
  const fields = readStat(pid) ?? []
  // Fields 14 and 15: utime, stime.
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Also includes child processes that have ended. */
export function readTotalCpuSeconds(pid: number): number {
  const fields = readStat(pid) ?? []
  // Fields 16 and 17: cutime, cstime.
  return readCpuSeconds(pid) + (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND
}

/** Resident memory of a process, in bytes. */
export function readRss(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** Peak resident memory of a process, in bytes. */
export function readPeakRss(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
