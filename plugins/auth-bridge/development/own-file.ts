// A file with keys, in a folder that may be shared: read only where nobody else can have written it, and written whole.
import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StartError } from '../../../core/index.ts'

const isAbsent = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'

const refuse = (path: string, what: string, fix: string) =>
  new StartError(`keepIn: ${path} ${what}, so no keys are kept there; ${fix}`)

/** Undefined where there are no owners: on Windows. */
const user = (): number | undefined => process.getuid?.()

const modeOf = ({ mode }: Stats) => (mode & 0o7777).toString(8)

/** Whoever writes to the folder puts another file in this one's place; not where a sticky bit keeps each to their own. */
async function checkFolder(folder: string): Promise<void> {
  const stats = await stat(folder).catch((error: unknown) => {
    if (isAbsent(error)) return undefined
    throw error
  })
  if (!stats || user() === undefined || (stats.mode & 0o1002) !== 0o002) return
  throw refuse(folder, `may be written by everybody (mode ${modeOf(stats)})`, `close it with: chmod o-w '${folder}'`)
}

async function openUnfollowed(file: string): Promise<FileHandle | undefined> {
  try {
    // Neither follows a link nor waits for the other end of a pipe. Windows has neither flag.
    return await open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    if (isAbsent(error)) return undefined
    if ((error as NodeJS.ErrnoException).code !== 'ELOOP') throw error
    throw refuse(file, 'is a link', 'name the file itself')
  }
}

/**
 * Its text, or undefined where there is none. What others could read is for the owner alone from then on. Rejects with a
 * StartError where somebody else may have written it.
 */
export async function readOwnFile(file: string): Promise<string | undefined> {
  await checkFolder(dirname(file))
  const handle = await openUnfollowed(file)
  if (!handle) return undefined
  try {
    const stats = await handle.stat()
    const uid = user()
    if (uid !== undefined) {
      if (stats.uid !== uid) throw refuse(file, `belongs to user ${stats.uid}, not to user ${uid}`, 'name another file')
      if ((stats.mode & 0o022) !== 0) {
        const fix = 'others know its keys, or chose them: delete it'
        throw refuse(file, `may be written by others (mode ${modeOf(stats)})`, fix)
      }
      if ((stats.mode & 0o077) !== 0) await handle.chmod(0o600)
    }
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

/** For the owner alone, and never half: a new file takes the place of the old one. */
export async function writeOwnFile(file: string, text: string): Promise<void> {
  const folder = dirname(file)
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  // Keys belong into no repository.
  if (made !== undefined) await writeFile(join(folder, '.gitignore'), '*\n')
  // A name that nobody can guess: what lies there already, such as a link, is not written to.
  const written = `${file}.${randomBytes(9).toString('base64url')}.new`
  try {
    await writeFile(written, text, { mode: 0o600, flag: 'wx' })
    await rename(written, file)
  } catch (error) {
    await rm(written, { force: true }).catch(() => undefined)
    throw error
  }
}
