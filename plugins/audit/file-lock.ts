// Locks a file for one writer. Locks of killed processes are taken over.
import { describeHolder, type FileLock, tryFileLock } from '../../client/node/file-lock.ts'
import { errorText, StartError } from '../../core/plugin.ts'

/** A process on another machine is considered dead after six missed heartbeats. */
const TIMING = { heartbeat: 10_000, expired: 60_000 }

export interface AuditLock {
  /** Creates a removed lock again. Throws if another process holds it. */
  hold(): Promise<void>
  release(): Promise<void>
}

const lockOf = (file: string) => `${file}.lock`

const stop = (what: string, cause?: unknown) => new StartError('MH2202', what, { exitCode: 2, cause })

function createAuditLock(file: string, lock: FileLock): AuditLock {
  return {
    async hold() {
      if (await lock.renew()) return
      throw new Error(`${lockOf(file)} belongs to another process, which started after this lock was removed`)
    },
    release: () => lock.release().catch(() => undefined),
  }
}

async function take(file: string): Promise<AuditLock | undefined> {
  try {
    const lock = await tryFileLock(lockOf(file), { timing: TIMING })
    return lock && createAuditLock(file, lock)
  } catch (cause) {
    throw stop(`${errorText(cause)}. Stop other hosts with this \`file\`, then remove ${lockOf(file)}`, cause)
  }
}

export async function lockFile(file: string): Promise<AuditLock> {
  const lock = await take(file)
  if (lock) return lock
  throw stop(
    `${file} is written by ${await describeHolder(lockOf(file))}: two writers would break its chain. Stop that host, or give each ` +
      `host a \`file\` of its own. A lock of another machine expires ${TIMING.expired / 1_000} s after its last heartbeat`,
  )
}

export async function lockFirst(files: readonly string[]): Promise<{ file: string; lock: AuditLock }> {
  for (const file of files) {
    const lock = await take(file)
    if (lock) return { file, lock }
  }
  throw stop(`all of ${files[0]} to ${files.at(-1)} are written by other processes`)
}
