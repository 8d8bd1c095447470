// Writes the file of a client that is not ours: whole or not at all, with its mode, and with the old one beside it.

import { constants } from 'node:fs'
import { copyFile, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { printable } from '../../client/printable.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { usage } from '../context.ts'

/** Old files that are kept. */
const MAX_BACKUPS = 100

const isAbsent = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'

/** The text of a file; undefined where there is none. */
export async function readConfig(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if (isAbsent(cause)) return undefined
    throw new StartError(`${file} cannot be read: ${errorText(cause)}`, { cause })
  }
}

/** Resolves all symbolic links in the path of a file. The file does not have to exist. */
export async function resolveFile(file: string): Promise<string> {
  try {
    return await realpath(file)
  } catch (cause) {
    if (isAbsent(cause) && dirname(file) !== file) return join(await resolveFile(dirname(file)), basename(file))
    throw new StartError(`${file} cannot be read: ${errorText(cause)}`, { cause })
  }
}

/** Throws a StartError (exit code 2) if a link of a project, which others may have made, leads out of its folder. */
export async function assertInside(folder: string, file: string): Promise<void> {
  const real = await resolveFile(file)
  const way = relative(await realpath(folder), real)
  if (way !== '..' && !way.startsWith(`..${sep}`)) return
  throw usage(
    `nothing was written: a link leads from ${printable(file)} to ${printable(real)}, outside of this project; replace the link, or add the entry by hand`,
  )
}

/** Copies the file beside itself, over nothing, and returns the copy's name. */
async function keepOld(file: string): Promise<string> {
  for (let count = 0; count < MAX_BACKUPS; count++) {
    const copy = `${file}.bak${count === 0 ? '' : count}`
    try {
      await copyFile(file, copy, constants.COPYFILE_EXCL)
      return copy
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  throw new Error(`there are ${MAX_BACKUPS} old ones beside it; delete some`)
}

/** Puts the text where it belongs; a link to the file stays one. */
async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const made = `${file}.${process.pid}.tmp`
  try {
    await writeFile(made, text, { mode, flag: 'wx' })
    await rename(made, file)
  } catch (error) {
    await rm(made, { force: true })
    throw error
  }
}

/** Returns where the old file is, if there was one. `before` is what was read: somebody may have written since. */
export async function writeConfig(file: string, before: string | undefined, text: string): Promise<string | undefined> {
  if ((await readConfig(file)) !== before) throw new StartError(`${file} was changed meanwhile; run this again`)
  try {
    if (before === undefined) {
      await mkdir(dirname(file), { recursive: true })
      // Others' entries, with keys in them, may come into it.
      await replaceFile(file, text, 0o600)
      return undefined
    }
    const real = await realpath(file)
    const { mode } = await stat(real)
    const old = await keepOld(real)
    await replaceFile(real, text, mode & 0o777)
    return old
  } catch (cause) {
    throw new StartError(`${file} cannot be written: ${errorText(cause)}`, { cause })
  }
}
