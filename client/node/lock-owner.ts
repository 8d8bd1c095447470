// Who holds a lock or writes a temporary file, told by the entry's name, and whether that process is still there.
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** `unknown`: on another machine, or nothing proves that the process of this number is the one that is meant. */
export type OwnerState = 'alive' | 'dead' | 'unknown'

/** Machine, process, the process's start (0: unknown), and a part that makes each name another one. */
const OWNER = /^([\w-]{16})\.(\d+)\.(\d+)\.[\w-]{12}$/
const TEMPORARY = /\.tmp\.([\w-]+\.\d+\.\d+\.[\w-]+)$/

/** A new name for an entry of this process, never the same twice. Safe as a file name. */
export function nameOwner(): string {
  const start = readStart(process.pid) ?? '0'
  return `${machineId()}.${process.pid}.${start}.${randomBytes(9).toString('base64url')}`
}

export function ownerProcess(name: string): string {
  return OWNER.exec(name)?.[2] ?? 'unknown'
}

/** A new name for a file or directory that will be renamed to `path`. */
export function temporaryName(path: string, owner = nameOwner()): string {
  return `${path}.tmp.${owner}`
}

/** Who made a temporary entry; undefined: it is none. */
export function temporaryOwner(name: string): string | undefined {
  return TEMPORARY.exec(name)?.[1]
}

/** What is known about the process behind a name that `nameOwner` gave. */
export function judgeOwner(name: string): OwnerState {
  const [, machine, pid, start] = OWNER.exec(name) ?? []
  if (machine !== machineId()) return 'unknown'
  if (!processExists(Number(pid))) return 'dead'
  if (start === '0') return 'unknown'
  const current = readStart(Number(pid))
  if (current === undefined) return 'unknown'
  return current === start ? 'alive' : 'dead'
}

/** Process numbers mean something within one boot of one machine, and on Linux within one PID namespace. */
function machineId(): string {
  const bootId = attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')) ?? ''
  const pidNamespace = attempt(() => readlinkSync('/proc/self/ns/pid')) ?? ''
  const identity = [hostname(), bootId, pidNamespace].join('\n')
  return createHash('sha256').update(identity).digest('base64url').slice(0, 16)
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * When a process started, in clock ticks since the boot (proc(5)): it tells a process from a later one with its number.
 * `ended` for one that is dead and whose parent has not heard of it yet. Undefined where there is no /proc.
 */
function readStart(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
  // The second field, the program's name, may itself have spaces and parentheses.
  const [state, ...rest] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
  return state === 'Z' || state === 'X' ? 'ended' : rest[18]
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
