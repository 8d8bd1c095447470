// Locks a file for one writer. Locks of killed processes are taken over.
import { type FileLock, nameHolder, tryFileLock } from '../../client/node/file-lock.ts'
import { errorText, StartError } from '../../core/plugin.ts'

/** A process on another machine counts as dead after six missed heartbeats. */
const TIMING = { heartbeat: 10_000, expired: 60_000 }

export interface AuditLock {
  /** Creates a removed lock again; throws if another process has it. */
  hold(): Promise<void>
  release(): Promise<void>
}

const lockOf = (file: string) => `${file}.lock`

const stop = (what: string, cause?: unknown) => new StartError('MH2202', what, { exitCode: 2, cause })

function audited(file: string, lock: FileLock): AuditLock {
  return {
    async hold() {
      if (await lock.renew()) return
      throw new Error(`${lockOf(file)} is another process's now: it began when the lock of this one was removed`)
    },
    release: () => lock.release().catch(() => undefined),
  }
}

async function take(file: string): Promise<AuditLock | undefined> {
  try {
    const lock = await tryFileLock(lockOf(file), { timing: TIMING })
    return lock && audited(file, lock)
  } catch (cause) {
    throw stop(`${errorText(cause)}. Stop other hosts with this \`file\`, and remove ${lockOf(file)}`, cause)
  }
}

export async function lockFile(file: string): Promise<AuditLock> {
  const lock = await take(file)
  if (lock) return lock
  throw stop(
    `${file} is written by ${await nameHolder(lockOf(file))}: two writers would break its chain. Give each host a \`file\` of ` +
      `its own, or stop the other; one on another machine counts as gone ${TIMING.expired / 1_000} s after its last sign of life`,
  )
}

export async function lockFirst(files: readonly string[]): Promise<{ file: string; lock: AuditLock }> {
  for (const file of files) {
    const lock = await take(file)
    if (lock) return { file, lock }
  }
  throw stop(`all of ${files[0]} to ${files.at(-1)} are written by other processes`)
}
