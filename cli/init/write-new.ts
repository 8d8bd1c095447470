// Writes new files, all or none. Existing files are never overwritten, and a failure leaves nothing behind.

import { lstatSync, mkdirSync, realpathSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { printable } from '../../client/text.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { usage } from '../context.ts'

export type NewFiles = ReadonlyMap<string, string>

const exists = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined
const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const steps = (path: string): string[] => path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))

function findBlocker(folder: string, paths: Iterable<string>): string[] {
  const found = [...paths].flatMap(path => {
    const blocked = steps(path).find(
      part => exists(join(folder, part)) && (part === path || !isFolder(join(folder, part))),
    )
    return blocked ?? []
  })
  return [...new Set(found)].sort()
}

const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

function resolveLink(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return 'nowhere'
  }
}

/** A symbolic link, such as in a cloned repository, can lead out of the folder. */
function assertWithin(folder: string, paths: Iterable<string>): void {
  const links = [...paths].flatMap(path => steps(path).filter(part => part !== path && isLink(join(folder, part))))
  const [link] = links
  if (link === undefined) return
  const problem = `${printable(link)} in ${printable(folder)} is a link to ${printable(resolveLink(join(folder, link)))}`
  throw usage(`nothing was written: ${problem}; replace it with a folder, or run this in the link's target`)
}

export function assertFree(folder: string, paths: Iterable<string>, fix: string): void {
  if (exists(folder) && !isFolder(folder)) {
    throw usage(`${printable(folder)} is a file, not a folder; name another one`)
  }
  const all = [...paths]
  assertWithin(folder, all)
  const found = findBlocker(folder, all)
  if (found.length === 0) return
  const list = found.map(path => `  ${path}`).join('\n')
  throw usage(`nothing was written: in ${printable(folder)} there is already\n${list}\n${fix}`)
}

/**
 * Writes all files or none, without following symbolic links to folders. Throws a StartError. Synchronous, so that Ctrl-C takes
 * effect afterwards.
 */
export function writeNew(folder: string, files: NewFiles): void {
  assertWithin(folder, files.keys())
  const created: string[] = []
  const folders: string[] = []
  const hold = () => undefined
  process.on('SIGINT', hold)
  try {
    for (const [path, text] of files) {
      const file = join(folder, ...path.split('/'))
      makeFolders(dirname(file), folders)
      writeFileSync(file, text, { flag: 'wx' })
      created.push(file)
    }
  } catch (cause) {
    for (const file of created) rmSync(file, { force: true })
    for (const empty of folders.reverse()) rmdirSync(empty)
    throw new StartError('MH3003', `nothing was written to ${printable(folder)}: ${errorText(cause)}`, { cause })
  } finally {
    process.off('SIGINT', hold)
  }
}

function makeFolders(folder: string, created: string[]): void {
  const first = mkdirSync(folder, { recursive: true })
  if (first === undefined) return
  const rest = folder
    .slice(first.length)
    .split(sep)
    .filter(part => part !== '')
  created.push(first, ...rest.map((_, index) => join(first, ...rest.slice(0, index + 1))))
}
