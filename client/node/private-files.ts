// Reads and atomically writes files that only their owner can access.
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AuthError } from '../errors.ts'
import { checkOwner, orAbsent, temporaryName, temporaryOwner } from './file-lock.ts'

const MAX_BYTES = 1024 * 1024
const LEFT_OVER = 24 * 60 * 60 * 1000

export async function ensurePrivateDirectory(directory: string): Promise<void> {
  if (await privateDirectoryExists(directory)) return
  await explained(`cannot make the directory ${directory}`, () => mkdir(directory, { recursive: true, mode: 0o700 }))
  await privateDirectoryExists(directory)
}

/** Returns false if it does not exist. Throws `cache_failed` for a link, another owner, or access by other users. */
export async function privateDirectoryExists(directory: string): Promise<boolean> {
  const stats = await explained(`cannot read the directory ${directory}`, () => orAbsent(lstat(directory)))
  if (!stats) return false
  if (!stats.isDirectory()) throw refuse(directory, 'is a link or a file, not a directory', 'use a separate directory')
  checkPrivate(directory, stats, '700')
  return true
}

/** Returns undefined if the file does not exist. Throws `cache_failed` like `privateDirectoryExists`. */
export async function readPrivateFile(path: string): Promise<Buffer | undefined> {
  return explained(`cannot read ${path}`, async () => {
    const file = await openUnfollowed(path)
    if (!file) return undefined
    try {
      const stats = await file.stat()
      if (!stats.isFile()) throw refuse(path, 'is not a file', 'move it away')
      checkPrivate(path, stats, '600')
      if (stats.size > MAX_BYTES)
        throw refuse(path, 'is larger than 1 MiB, so this program did not write it', 'move it away')
      return await file.readFile()
    } finally {
      await file.close()
    }
  })
}

/** Replaces the file (mode 0600) atomically, also across crashes. Resolves once the data is on disk. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const temporary = temporaryName(path)
  await explained(`cannot write ${path}`, async () => {
    try {
      const file = await open(temporary, 'wx', 0o600)
      try {
        await file.writeFile(content)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {})
      throw error
    }
    await syncDirectory(dirname(path))
  })
}

export async function removePrivateFile(path: string): Promise<void> {
  await explained(`cannot delete ${path}`, async () => {
    await orAbsent(unlink(path))
    await syncDirectory(dirname(path))
  })
}

export async function removeLeftovers(directory: string): Promise<void> {
  await explained(`cannot tidy ${directory}`, async () => {
    for (const name of await readdir(directory)) {
      const owner = temporaryOwner(name)
      if (owner === undefined) continue
      const path = join(directory, name)
      if (await isLeftOver(path, owner)) await rm(path, { recursive: true, force: true })
    }
  })
}

async function isLeftOver(path: string, owner: string): Promise<boolean> {
  const state = checkOwner(owner)
  if (state !== 'unknown') return state === 'dead'
  const stats = await orAbsent(lstat(path))
  return stats !== undefined && Date.now() - stats.mtimeMs > LEFT_OVER
}

function checkPrivate(path: string, stats: Stats, mode: string): void {
  const uid = process.getuid?.()
  if (uid === undefined) return
  if (stats.uid !== uid) throw refuse(path, `belongs to user ${stats.uid}, not to user ${uid}`, 'give one of your own')
  if ((stats.mode & 0o077) === 0) return
  const found = (stats.mode & 0o777).toString(8)
  throw refuse(path, `is open to other users (mode ${found})`, `close it with: chmod ${mode} '${path}'`)
}

async function openUnfollowed(path: string): Promise<FileHandle | undefined> {
  try {
    // Does not follow links or block on a pipe. Windows has neither flag.
    return await orAbsent(open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ELOOP') throw error
    throw refuse(path, 'is a symbolic link', 'replace it by the file itself')
  }
}

/** Makes a rename durable. Not supported on Windows. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(directory, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function explained<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (AuthError.is(error)) throw error
    const { code, message } = error as NodeJS.ErrnoException
    throw new AuthError(`${what} (${code ?? message})`, {
      code: 'cache_failed',
      cause: error,
      fix: 'the directory must be writable for this user, on a disk with room',
    })
  }
}

function refuse(path: string, what: string, fix: string): AuthError {
  return new AuthError(`${path} ${what}, so no tokens are kept there`, { code: 'cache_failed', fix })
}
