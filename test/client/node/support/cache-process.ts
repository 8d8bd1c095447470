// A process that uses the file lock or the file cache. It gets its job as JSON, reports results by messages, and ends
// when it is done or killed.
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { createFileTokenCache } from '../../../../client/node/file-cache.ts'
import { acquireFileLock, withFileLock } from '../../../../client/node/file-lock.ts'

export type Job =
  /** Adds one to the file `counter` at each `go`, `rounds` times; tells of each, and of everybody it met inside. */
  | { type: 'count'; directory: string; rounds: number; locked: boolean }
  /** Takes the lock and keeps it. */
  | { type: 'hold'; path: string }
  /** Takes the login lease and keeps it until `release`. */
  | { type: 'lease'; directory: string }
  /** Stores one number after the other under the lock, and tells of each that is stored. */
  | { type: 'store'; directory: string }
  /** Stores a container of its own at `go`, into a directory that nobody has made. */
  | { type: 'first'; directory: string; key: string }

export interface Told {
  readonly held?: boolean
  readonly stored?: number
  readonly done?: boolean
  /** How many others were inside at the same time. */
  readonly met?: number
}

const tell = (told: Told) => new Promise<void>(resolve => process.send?.(told, () => resolve()))
const hear = () => once(process, 'message')
// Nothing else keeps a process that only waits; it ends with its parent.
process.once('disconnect', () => process.exit())

/** A change of a file that loses somebody's change where two do it at the same time. */
async function addOne(directory: string): Promise<number> {
  const inside = join(directory, 'inside')
  let met = 0
  try {
    writeFileSync(inside, '', { flag: 'wx' })
  } catch {
    met = 1
  }
  const counter = join(directory, 'counter')
  const before = Number(readFileSync(counter, 'utf8'))
  await turn()
  writeFileSync(counter, String(before + 1))
  rmSync(inside, { force: true })
  return met
}

async function count(job: Extract<Job, { type: 'count' }>): Promise<void> {
  for (let round = 0; round < job.rounds; round++) {
    const heard = hear()
    await tell({ done: true })
    await heard
    const work = () => addOne(job.directory)
    const met = await (job.locked ? withFileLock(join(job.directory, 'lock'), work) : work())
    await tell({ met })
  }
}

async function store(directory: string): Promise<void> {
  const cache = createFileTokenCache(directory)
  const context = { key: 'counted', label: 'counted' }
  for (;;) {
    const next = await cache.withLock(context, async () => {
      const stored = Number((await cache.getTokens(context))?.accessToken ?? 0) + 1
      // Long enough that a write of it in two parts would show.
      const filler = 'x'.repeat(4_000 + ((stored * 997) % 60_000))
      await cache.storeTokens({ v: 1, accessToken: String(stored), refreshToken: filler }, context)
      return stored
    })
    await tell({ stored: next })
  }
}

async function run(job: Job): Promise<void> {
  if (job.type === 'count') return count(job)
  if (job.type === 'store') return store(job.directory)
  if (job.type === 'hold') {
    await acquireFileLock(job.path)
    return tell({ held: true })
  }
  const cache = createFileTokenCache(job.directory)
  if (job.type === 'lease') {
    const lease = await cache.leaseLogin({ key: 'login' })
    const heard = hear()
    await tell({ held: lease.held })
    await heard
    if (lease.held) await lease.release()
    return tell({ done: true })
  }
  const heard = hear()
  await tell({ done: true })
  await heard
  await cache.storeTokens({ v: 1, accessToken: job.key }, { key: job.key })
  return tell({ done: true })
}

await run(JSON.parse(process.argv[2] ?? '') as Job)
