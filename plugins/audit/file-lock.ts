// Locks a file for one writer. Locks of killed processes are taken over.
import { createHash, randomUUID } from 'node:crypto'
import { link, lstat, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { isObject, StartError } from '../../core/plugin.ts'
import { processStartTime } from '../families/plugin-files/index.ts'
import { codeOf } from './files.ts'

/** Milliseconds between heartbeats, and missed ones after which a writer on another machine is dead. */
const TOUCH = 10_000
const MISSED = 6
const MAX_ROUNDS = 100

export interface FileLock {
  /** Creates a removed lock again; throws if another process has it. */
  hold(): Promise<void>
  release(): Promise<void>
}

function isRunning(pid: number, began: unknown): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false
  }
  const now = processStartTime(pid)
  return now === undefined || began === undefined || now === began
}

const stop = (what: string) => new StartError('MH2202', what, { exitCode: 2 })

async function read(path: string): Promise<string | undefined> {
  try {
    const info = await lstat(path)
    if (info.isFile()) return await readFile(path, 'utf8')
    const what = info.isSymbolicLink() ? 'a symbolic link' : 'no file'
    throw stop(`${path} is ${what}, at the path of the audit lock file: remove it`)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

async function findOwner(path: string, text: string): Promise<string | undefined> {
  try {
    const { mtimeMs } = await stat(path)
    const held: unknown = JSON.parse(text)
    if (!isObject(held)) return undefined
    const { pid, began, machine } = held
    // Values below 1 denote process groups.
    if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return undefined
    if (typeof machine !== 'string') return undefined
    const isLive = machine === hostname() ? isRunning(pid, began) : Date.now() - mtimeMs < MISSED * TOUCH
    return isLive ? `process ${pid} on ${machine.replace(/[^\w.-]/g, '?')}` : undefined
  } catch (error) {
    // The lock is gone, or a power cut left it empty.
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

function newText(): string {
  const { pid } = process
  return JSON.stringify({ pid, began: processStartTime(pid), machine: hostname(), id: randomUUID() })
}

async function make(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`
  try {
    await writeFile(draft, text, { flag: 'wx', mode: 0o640 })
    await link(draft, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

async function removeOwn(path: string, text: string): Promise<void> {
  if ((await read(path)) === text) await rm(path, { force: true })
}

/** Removes an abandoned lock. A guard lock keeps slow processes from removing a newer one. */
async function clear(path: string, text: string): Promise<string | undefined> {
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const guard = await take(`${path}.${name}`)
  if ('holder' in guard) return guard.holder
  try {
    await removeOwn(path, text)
  } finally {
    await guard.lock.release()
  }
  return undefined
}

async function put(path: string, text: string): Promise<string | undefined> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = await read(path)
    const holder = found === undefined ? undefined : ((await findOwner(path, found)) ?? (await clear(path, found)))
    if (holder !== undefined) return holder
    if (await make(path, text)) return undefined
  }
  throw stop(`${path} keeps changing: stop the other processes that use this audit file`)
}

async function take(path: string): Promise<{ lock: FileLock } | { holder: string }> {
  const text = newText()
  const holder = await put(path, text)
  if (holder !== undefined) return { holder }
  async function hold() {
    if ((await read(path)) === text || (await make(path, text))) return
    throw new Error(`${path} now belongs to another process, which started when the lock of this process was removed`)
  }
  const touching = setInterval(() => {
    const now = new Date()
    hold()
      .then(() => utimes(path, now, now))
      .catch(() => undefined)
  }, TOUCH)
  touching.unref()
  async function release() {
    clearInterval(touching)
    await removeOwn(path, text).catch(() => undefined)
  }
  return { lock: { hold, release } }
}

export async function lockFile(file: string): Promise<FileLock> {
  const taken = await take(`${file}.lock`)
  if ('lock' in taken) return taken.lock
  const wait = (MISSED * TOUCH) / 1_000
  throw stop(
    `${file} is written by ${taken.holder}: two writers would break its chain. Give each host a \`file\` of its own, or ` +
      `stop the other; one on another machine counts as stopped ${wait} s after its last heartbeat`,
  )
}

export async function lockFirst(files: readonly string[]): Promise<{ file: string; lock: FileLock }> {
  for (const file of files) {
    const taken = await take(`${file}.lock`)
    if ('lock' in taken) return { file, lock: taken.lock }
  }
  throw stop(`all of ${files[0]} to ${files.at(-1)} are written by other processes`)
}
