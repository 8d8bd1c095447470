// A file with secrets. It is read only if no other user can write it, and is always replaced as a whole.
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StartError } from '../../../core/index.ts'

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

const refuse = (path: string, what: string, fix: string) => new StartError(`keepIn: ${path} ${what}; ${fix}`)

/** The mode in octal if any of these bits is set, else undefined. Windows has no owners. */
const modeWith = (mode: number, bits: number) =>
  process.getuid !== undefined && (mode & bits) !== 0 ? (mode & 0o7777).toString(8) : undefined

/** Does not follow links or block on a pipe. Windows has neither flag. */
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** The text; undefined if there is no file. Rejects with a StartError if other users can write the file. */
export async function readOwnFile(file: string): Promise<string | undefined> {
  const folder = dirname(file)
  const mode = (await stat(folder).catch(() => undefined))?.mode ?? 0
  const writableFolder = (mode & 0o1000) === 0 ? modeWith(mode, 0o002) : undefined
  if (writableFolder !== undefined)
    throw refuse(folder, `can be written by every user (mode ${writableFolder})`, `run: chmod o-w '${folder}'`)
  const handle = await open(file, READ).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw codeOf(error) === 'ELOOP' ? refuse(file, 'is a symbolic link', 'use the path of the file itself') : error
  })
  if (!handle) return undefined
  try {
    const stats = await handle.stat()
    const user = process.getuid?.() ?? stats.uid
    if (stats.uid !== user) throw refuse(file, `belongs to user ${stats.uid}, not to user ${user}`, 'use another file')
    const writable = modeWith(stats.mode, 0o022)
    if (writable !== undefined) throw refuse(file, `can be written by other users (mode ${writable})`, 'delete it')
    if (modeWith(stats.mode, 0o077) !== undefined) await handle.chmod(0o600)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

/** Replaces the file as a whole, readable for its owner only. */
export async function writeOwnFile(file: string, text: string): Promise<void> {
  const folder = dirname(file)
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  // Keeps the secrets out of Git.
  if (made !== undefined) await writeFile(join(folder, '.gitignore'), '*\n')
  // An unpredictable name: an existing file or link is never written to.
  const written = `${file}.${randomBytes(9).toString('base64url')}.new`
  try {
    await writeFile(written, text, { mode: 0o600, flag: 'wx' })
    await rename(written, file)
  } catch (error) {
    await rm(written, { force: true }).catch(() => undefined)
    throw error
  }
}
