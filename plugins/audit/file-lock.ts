// One writer for one file: a lock beside it says which process writes. What a process left that was killed is taken over;
// of a process on another machine nobody can ask the system, so its lock counts while it is touched.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { isObject, StartError } from '../../core/index.ts'

/** Milliseconds between two touches, and after how many of them without one the writer is taken for gone. */
const TOUCH = 10_000
const MISSED = 6

export interface FileLock {
  release(): Promise<void>
}

/** When a process began, as Linux tells it, so that another one with its id is not taken for it. */
function beganAt(pid: number): string | undefined {
  try {
    // The name in parentheses may have spaces, and parentheses.
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')[19]
  } catch {
    return undefined
  }
}

function isRunning(pid: number, began: unknown): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const now = beganAt(pid)
  return now === undefined || began === undefined || now === began
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Who holds a lock, in words; undefined: nobody does any more. */
async function holderOf(path: string): Promise<string | undefined> {
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(path, 'utf8'), stat(path)])
    const held: unknown = JSON.parse(text)
    if (!isObject(held)) return undefined
    const { pid, began, machine } = held
    if (typeof pid !== 'number' || typeof machine !== 'string') return undefined
    const isLive = machine === hostname() ? isRunning(pid, began) : Date.now() - mtimeMs < MISSED * TOUCH
    return isLive ? `process ${pid} on ${machine.replace(/[^\w.-]/g, '?')}` : undefined
  } catch (error) {
    // It went meanwhile, or a machine that lost its power left nothing in it.
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Makes the lock, with what it says: a process that only begins finds no half of it. */
async function make(path: string): Promise<boolean> {
  const { pid } = process
  const draft = `${path}.${randomUUID()}`
  await writeFile(draft, JSON.stringify({ pid, began: beganAt(pid), machine: hostname() }), { flag: 'wx', mode: 0o640 })
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Takes away a lock that nobody holds. Says who holds it where another was as quick and made its own. */
async function clear(path: string): Promise<string | undefined> {
  const aside = `${path}.${randomUUID()}`
  try {
    await rename(path, aside)
    const holder = await holderOf(aside)
    if (holder !== undefined) await link(aside, path)
    return holder
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  } finally {
    await rm(aside, { force: true })
  }
}

/** Says who holds it, where somebody does. */
async function take(path: string): Promise<{ lock: FileLock } | { holder: string }> {
  for (;;) {
    if (await make(path)) break
    const holder = (await holderOf(path)) ?? (await clear(path))
    if (holder !== undefined) return { holder }
  }
  const touching = setInterval(() => {
    const now = new Date()
    utimes(path, now, now).catch(() => undefined)
  }, TOUCH)
  touching.unref()
  async function release() {
    clearInterval(touching)
    await rm(path, { force: true }).catch(() => undefined)
  }
  return { lock: { release } }
}

/** Throws a StartError that names the writer, where there is one. */
export async function lockFile(file: string): Promise<FileLock> {
  const taken = await take(`${file}.lock`)
  if ('lock' in taken) return taken.lock
  const wait = (MISSED * TOUCH) / 1_000
  throw new StartError(
    `${file} is written by ${taken.holder}: two writers would break its chain. Give each host a \`file\` of its own, or ` +
      `stop the other; one on another machine counts as gone ${wait} s after its last sign of life`,
    { exitCode: 2 },
  )
}

/** The first of these files that nobody writes. */
export async function lockFirst(files: readonly string[]): Promise<{ file: string; lock: FileLock }> {
  for (const file of files) {
    const taken = await take(`${file}.lock`)
    if ('lock' in taken) return { file, lock: taken.lock }
  }
  throw new StartError(`all of ${files[0]} to ${files.at(-1)} are written by other processes`, { exitCode: 2 })
}
