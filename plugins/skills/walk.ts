// Walks a skills folder. Symbolic links are refused except in Kubernetes volumes: one name per file for policies.
import type { Dirent, Stats } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

export const SKILL_FILE = 'SKILL.md'
const SCHEME = 'skill://'
const MAX_ENTRIES = 50_000
const MAX_DEPTH = 32

/** Characters that encodeURIComponent encodes but RFC 3986 allows in a path segment. */
const PLAIN_IN_PATH = /%(?:24|26|2B|2C|3A|3B|3D|40)/g
/** The same characters in the first segment, the authority. */
const PLAIN_IN_NAME = /%(?:24|26|2B|2C|3B|3D)/g

/** Returns the URI of a file or folder, by its names from the skills folder on. */
export function uriOf(names: readonly string[]): string {
  const segments = names.map((name, at) =>
    encodeURIComponent(name.normalize('NFC')).replace(at === 0 ? PLAIN_IN_NAME : PLAIN_IN_PATH, decodeURIComponent),
  )
  return `${SCHEME}${segments.join('/')}`
}

/** Returns the parent folder; undefined if it has no URI. */
export function folderOf(uri: string): string | undefined {
  const at = uri.lastIndexOf('/')
  return at < SCHEME.length ? undefined : uri.slice(0, at)
}

export const nameOf = (uri: string): string => decodeURIComponent(uri.slice(uri.lastIndexOf('/') + 1))

/** A mistake in a skills folder. The message starts with the file, as the config names the folder. */
export class SkillError extends Error {
  constructor(place: string, what: string, line?: number) {
    super(line === undefined ? `${place}: ${what}` : `${place}:${line}: ${what}`)
    this.name = 'SkillFault'
  }
}

export function fileProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'EPERM') return 'the user of this process cannot read it'
  if (code === 'ENOENT') return 'it does not exist'
  if (code === 'ELOOP') return 'it is a symbolic link that leads back to itself'
  return `it cannot be read: ${code ?? message}`
}

export const formatCount = (count: number): string => count.toLocaleString('en-US')

export interface FoundFile {
  readonly names: readonly string[]
  /** The path without links. */
  readonly path: string
}

export interface FoundFolder {
  readonly names: readonly string[]
  readonly files: readonly FoundFile[]
  readonly folders: readonly FoundFolder[]
}

interface Walk {
  /** The real path of the skills folder. */
  readonly root: string
  readonly shown: (names: readonly string[]) => string
  readonly report: (fault: SkillError) => void
  entries: number
}

/** Matches the folders of a Kubernetes volume, whose files are behind links. */
const VOLUME = /^\.\.(?:data|\d{4}(?:_\d\d){5}\.\d+)$/

const UNUSABLE = /\p{Cc}|\uFFFD/u

function isOfVolume(root: string, path: string, names: readonly string[]): boolean {
  const real = relative(root, path).split(sep)
  return real.filter(name => !VOLUME.test(name)).join('/') === names.join('/') && real.length > names.length
}

async function resolveEntry(walk: Walk, folder: string, entry: Dirent, names: readonly string[]) {
  const fail = (what: string) => new SkillError(walk.shown(names), what)
  if (UNUSABLE.test(entry.name)) throw fail('its name has control characters or is not UTF-8: rename it')
  let path = join(folder, entry.name)
  let found: Dirent | Stats = entry
  if (entry.isSymbolicLink()) {
    try {
      path = await realpath(path)
      found = await stat(path)
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      throw fail(isMissing ? 'it is a broken symbolic link: remove it' : fileProblem(error))
    }
    if (!isOfVolume(walk.root, path, names)) throw fail('it is a symbolic link: put a copy there instead')
  }
  if (!found.isFile() && !found.isDirectory()) throw fail('it is neither a file nor a folder: remove it')
  return { path, isFolder: found.isDirectory() }
}

async function walkFolder(walk: Walk, path: string, names: readonly string[]): Promise<FoundFolder> {
  const place = walk.shown(names)
  if (names.length > MAX_DEPTH) throw new SkillError(place, `folders are nested more than ${MAX_DEPTH} deep`)
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    throw new SkillError(place, fileProblem(error))
  })
  const files: FoundFile[] = []
  const folders: FoundFolder[] = []
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue
    if (++walk.entries > MAX_ENTRIES) throw new TooManyEntries(walk)
    const own = [...names, entry.name]
    try {
      const { path: real, isFolder } = await resolveEntry(walk, path, entry, own)
      if (isFolder) folders.push(await walkFolder(walk, real, own))
      else files.push({ names: own, path: real })
    } catch (error) {
      if (!(error instanceof SkillError) || error instanceof TooManyEntries) throw error
      walk.report(error)
    }
  }
  return { names, files, folders }
}

class TooManyEntries extends SkillError {
  constructor({ shown }: Walk) {
    super(shown([]), `more than ${formatCount(MAX_ENTRIES)} files and folders are below it: is it the right folder?`)
  }
}

/** `shown`: formats paths. `report` receives faults of skipped entries. Rejects with a SkillFault. */
export async function walkSkills(
  folder: string,
  shown: (names: readonly string[]) => string,
  report: (fault: SkillError) => void,
): Promise<FoundFolder> {
  const place = shown([])
  const root = await realpath(folder).catch((error: unknown) => {
    throw new SkillError(place, `${fileProblem(error)}; create it, with a subfolder that contains a ${SKILL_FILE}`)
  })
  if (!(await stat(root)).isDirectory()) throw new SkillError(place, 'it is not a folder')
  return walkFolder({ root, shown, report, entries: 0 }, root, [])
}
