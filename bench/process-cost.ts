// What a process has used so far, from Linux's /proc; other systems do not tell, and rows then count wall-clock time.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Linux reports CPU time in these to every process, whatever its own timer runs at (proc(5), USER_HZ). */
export const TICKS_PER_SECOND = 100

export const CAN_READ_COST = existsSync('/proc/self/stat')

/** The fields of a process's stat from the third on; undefined when it has ended. */
function readStat(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field, the program's name in brackets, may hold anything: count from its end.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** A process, and all that it started, directly or not. */
export function processTree(pid: number): number[] {
  const pids = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
  const parents = new Map(pids.map(one => [one, Number(readStat(one)?.[1])]))
  const isUnder = (one: number | undefined): boolean =>
    one === pid || (one !== undefined && one > 1 && isUnder(parents.get(one)))
  return pids.filter(isUnder)
}

/** The program of a process and its arguments, with spaces between; empty when it has ended. */
export function readCommandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

/** User and system time of all threads of a process, seconds. */
export function readCpuSeconds(pid: number): number {
  const fields = readStat(pid) ?? []
  // utime and stime are 14 and 15.
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** The same, with that of what it started and that has ended. */
export function readCpuSecondsOfAll(pid: number): number {
  const fields = readStat(pid) ?? []
  // cutime and cstime are 16 and 17.
  return readCpuSeconds(pid) + (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND
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
