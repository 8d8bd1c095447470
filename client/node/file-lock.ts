// File locks across processes, with detection of dead owners.
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, rmdir, stat, unlink, utimes } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { AuthError } from '../errors.ts'
import { processText } from '../text.ts'

const OWNER = /^([\w-]{16})\.(\d+)\.(\d+)\.[\w-]{12}$/
const TEMPORARY = /\.tmp\.([\w-]+\.\d+\.\d+\.[\w-]+)$/

export function createOwnerName(): string {
  const start = readStart(process.pid) ?? '0'
  return `${machineId()}.${process.pid}.${start}.${randomBytes(9).toString('base64url')}`
}

export const temporaryName = (path: string, owner = createOwnerName()): string => `${path}.tmp.${owner}`

export const temporaryOwner = (name: string): string | undefined => TEMPORARY.exec(name)?.[1]

/** `unknown`: on another machine, or the process id cannot be verified. */
export function checkOwner(name: string): 'alive' | 'dead' | 'unknown' {
  const [, machine, pid, start] = OWNER.exec(name) ?? []
  if (machine !== machineId()) return 'unknown'
  if (!processExists(Number(pid))) return 'dead'
  if (start === '0') return 'unknown'
  const current = readStart(Number(pid))
  if (current === undefined) return 'unknown'
  return current === start ? 'alive' : 'dead'
}

/** Process ids are unique only within one boot, and on Linux within one PID namespace. */
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

/** Start time in clock ticks since boot (proc(5)). `ended` for a zombie; undefined without /proc. */
function readStart(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
  // The program name can contain spaces and parentheses.
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

interface LockTiming {
  readonly wait: number
  readonly poll: number
  readonly heartbeat: number
  /** Milliseconds without heartbeat after which an `unknown` owner counts as dead. */
  readonly stale: number
  /** Milliseconds without heartbeat after which an owner in this process counts as dead, such as an ended worker thread. */
  readonly abandoned: number
}

const TIMING: LockTiming = { wait: 30_000, poll: 100, heartbeat: 2_000, stale: 10_000, abandoned: 300_000 }

/** Polls that a release may take between its two steps. Its second step can fail on Windows. */
const RELEASE_POLLS = 20

interface LockOptions {
  readonly signal?: AbortSignal | undefined
  readonly timing?: Partial<LockTiming>
}

export interface FileLock {
  release(): Promise<void>
}

/** Runs `work` with an exclusive lock across processes. Rejects with `temporarily_unavailable` on timeout. */
export async function withFileLock<T>(path: string, work: () => Promise<T>, options: LockOptions = {}): Promise<T> {
  const lock = await acquireFileLock(path, options)
  try {
    return await work()
  } finally {
    await lock.release()
  }
}

export async function acquireFileLock(path: string, { signal, timing }: LockOptions = {}): Promise<FileLock> {
  const times = { ...TIMING, ...timing }
  const until = performance.now() + times.wait
  const lock = await takeLock(path, times, async (createLock, watch) => {
    for (let delay = 4; ; delay = Math.min(delay * 2, times.poll)) {
      if (await createLock()) return true
      if (!(await watch()) && (await createLock())) return true
      if (performance.now() >= until) return false
      await pause(delay, signal)
    }
  })
  if (!lock) throw await busyError(path, times.wait)
  return lock
}

export async function tryFileLock(path: string, { timing }: LockOptions = {}): Promise<FileLock | undefined> {
  const times = { ...TIMING, ...timing }
  return takeLock(path, times, async (createLock, watch) => (await createLock()) || (!(await watch()) && createLock()))
}

/**
 * Waits for the current holder. Resolves to false if it released the lock, and to true if it ended without releasing it. Rejects
 * with the signal's reason on abort.
 */
export async function waitForFileLock(path: string, { signal, timing }: LockOptions = {}): Promise<boolean> {
  const times = { ...TIMING, ...timing }
  const watch = watchOwner(path, times)
  const initial = await watch()
  let polls = 0
  for (let owner = initial; ; owner = await watch()) {
    if (owner === false || (owner !== undefined && owner !== initial)) return true
    if (owner === undefined) {
      // A release removes the owner file, then the directory. If the holder dies, the directory remains until the next holder.
      if (!(await orAbsent(stat(path)))) return false
      if (initial && checkOwner(initial) === 'dead') return true
      if (++polls > RELEASE_POLLS) return !initial
    }
    await pause(times.poll, signal)
  }
}

/** Returns the process id of the holder, if the holder runs on this machine. */
export async function readLockOwner(path: string): Promise<number | undefined> {
  const [, machine, pid] = OWNER.exec((await readOwner(path).catch(() => undefined))?.owner ?? '') ?? []
  return machine === machineId() ? Number(pid) : undefined
}

/** Returns the owner's file name, false if this call removed a dead owner, or undefined without an owner. */
type Watch = () => Promise<string | false | undefined>

async function takeLock(
  path: string,
  times: LockTiming,
  attempt: (createLock: () => Promise<boolean>, watch: Watch) => Promise<boolean>,
): Promise<FileLock | undefined> {
  const owner = createOwnerName()
  const prepared = temporaryName(path, owner)
  let taken = false
  try {
    await mkdir(prepared, { mode: 0o700 })
    await (await open(join(prepared, owner), 'wx', 0o600)).close()
    taken = await attempt(() => renameOntoFree(prepared, path), watchOwner(path, times))
    return taken ? startHeartbeat(path, owner, times) : undefined
  } catch (error) {
    throw explainError(error, path)
  } finally {
    if (!taken) await rm(prepared, { recursive: true, force: true }).catch(() => {})
  }
}

async function renameOntoFree(prepared: string, path: string): Promise<boolean> {
  try {
    await rename(prepared, path)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false
    if (process.platform !== 'win32' || (code !== 'EPERM' && code !== 'EACCES')) throw error
    // Windows cannot rename over an existing entry; a release leaves an empty directory briefly.
    await rmdir(path).catch(() => {})
    return false
  }
}

function startHeartbeat(path: string, owner: string, { heartbeat }: LockTiming): FileLock {
  const file = join(path, owner)
  const beat = () => {
    const now = new Date()
    utimes(file, now, now).catch(() => {})
  }
  beat()
  const timer = setInterval(beat, heartbeat).unref()
  return {
    async release() {
      clearInterval(timer)
      await orAbsent(unlink(file)).catch(error => {
        throw explainError(error, path)
      })
      await rmdir(path).catch(() => {})
    },
  }
}

function watchOwner(path: string, { stale, abandoned, poll }: LockTiming): Watch {
  let last: { readonly owner: string; readonly beat: number } | undefined
  let checkedAt = 0
  let silent = 0
  return async () => {
    const seen = await readOwner(path)
    if (!seen) return undefined
    const now = performance.now()
    // A suspended watcher cannot judge the owner.
    silent = last?.owner === seen.owner && last.beat === seen.beat ? silent + Math.min(now - checkedAt, 2 * poll) : 0
    checkedAt = now
    last = seen
    const state = checkOwner(seen.owner)
    // Another living process keeps its lock: it can be suspended and continue. This process is not suspended.
    const isOther = state === 'alive' && !seen.owner.startsWith(`${machineId()}.${process.pid}.`)
    const isSilent = silent >= stale && (state === 'unknown' || Date.now() - seen.beat >= abandoned)
    if (isOther || (state !== 'dead' && !isSilent)) return seen.owner
    await orAbsent(unlink(join(path, seen.owner)))
    return false
  }
}

async function readOwner(path: string): Promise<{ owner: string; beat: number } | undefined> {
  const [owner] = (await orAbsent(readdir(path))) ?? []
  const found = owner === undefined ? undefined : await orAbsent(stat(join(path, owner)))
  return owner !== undefined && found ? { owner, beat: found.mtimeMs } : undefined
}

/** Resolves to undefined if the file or folder does not exist. */
export async function orAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await sleep(milliseconds * (0.5 + Math.random() / 2), undefined, signal && { signal }).catch(() => {})
  signal?.throwIfAborted()
}

async function busyError(path: string, wait: number): Promise<AuthError> {
  const owner = processText(await readLockOwner(path))
  return new AuthError(`the lock ${basename(path)} was held by ${owner} for ${wait / 1000} s`, {
    code: 'temporarily_unavailable',
    retryable: true,
    fix: `try again, or, if that process hangs, end it (the lock is ${path})`,
  })
}

function explainError(error: unknown, path: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (code === undefined || syscall === undefined) return error
  return new AuthError(`the lock ${path} cannot be used (${syscall}: ${code})`, {
    code: 'cache_failed',
    cause: error,
    fix: 'make its directory writable for this user, on a disk with room, and remove anything else at that path',
  })
}
