// Walks a folder of skills: every file and folder of it by its names, symbolic links followed as far as they stay in it. What
// has a hidden name (`.git`, `.DS_Store`) is passed over, and no link leads to it.
import type { Dirent, Stats } from 'node:fs'
import { readdir, readlink, realpath, stat } from 'node:fs/promises'
import { join, parse, relative, sep } from 'node:path'
import { fileTrouble, SkillFault, shownCount } from './fault.ts'
import { MAX_DEPTH, MAX_ENTRIES } from './limits.ts'
import { SKILL_FILE } from './uris.ts'

/** Maximum links to follow, as in operating systems. */
const MAX_LINKS = 40

/** Whether a path is a folder or below it. */
const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

const BETWEEN = sep === '/' ? /\// : /[\\/]/
const segmentsOf = (path: string) => path.split(BETWEEN).filter(name => name !== '' && name !== '.')

/**
 * The paths below `root` that the links of a path point to. The last one is the final target. `root` contains no link.
 */
async function linkTargets(root: string, path: string): Promise<string[]> {
  const { root: top } = parse(path)
  let place = top
  let rest = segmentsOf(path.slice(top.length))
  const over: string[] = []
  for (let links = 0; links <= MAX_LINKS; ) {
    const [name, ...further] = rest
    if (name === undefined) break
    rest = further
    if (name === '..') {
      place = join(place, '..')
      continue
    }
    const target = await readlink(join(place, name)).catch(() => undefined)
    if (target === undefined) {
      place = join(place, name)
      continue
    }
    links++
    const { root: otherTop } = parse(target)
    if (otherTop !== '') place = otherTop
    rest = [...segmentsOf(target.slice(otherTop.length)), ...rest]
    const whole = join(place, ...rest)
    if (isInside(root, whole)) over.push(whole)
  }
  if (isInside(root, place)) over.push(place)
  return over
}

/** A file on the disk. */
export interface FoundFile {
  /** Its names, from the folder of skills on. */
  readonly names: readonly string[]
  /** Where it really is. */
  readonly path: string
  /** The names that it really has. */
  readonly realNames: readonly string[]
  /** Those that links lead over on the way from the one to the other. */
  readonly over: ReadonlyArray<readonly string[]>
}

export interface FoundFolder {
  readonly names: readonly string[]
  readonly files: readonly FoundFile[]
  readonly folders: readonly FoundFolder[]
}

interface Walk {
  /** Where the folder of skills really is. */
  readonly root: string
  readonly shown: (names: readonly string[]) => string
  readonly tell: (fault: SkillFault) => void
  entries: number
}

/** What Kubernetes calls the folder that the files of a volume are in, behind links. */
const VOLUME = /^\.\.(?:data|\d{4}(?:_\d\d){5}\.\d+)$/

/** The names of a path below the root, without those of a volume, which are its own affair. */
const namesOf = (root: string, path: string) =>
  relative(root, path)
    .split(sep)
    .filter(name => name && !VOLUME.test(name))

const UNUSABLE = /\p{Cc}|\uFFFD/u

/** Where an entry really is, and whether it is a folder; throws what is wrong with it. */
async function follow(walk: Walk, folder: string, entry: Dirent, names: readonly string[]) {
  const fail = (what: string) => new SkillFault(walk.shown(names), what)
  if (UNUSABLE.test(entry.name)) throw fail('its name has control characters or is not UTF-8: rename it')
  let path = join(folder, entry.name)
  let found: Dirent | Stats = entry
  try {
    if (entry.isSymbolicLink()) {
      path = await realpath(path)
      found = await stat(path)
    }
  } catch (error) {
    const isLost = (error as NodeJS.ErrnoException).code === 'ENOENT'
    throw fail(isLost ? 'it is a symbolic link to nothing: remove it' : fileTrouble(error))
  }
  if (!isInside(walk.root, path)) {
    throw fail('it is a symbolic link that leads out of the folder of skills: put a copy there instead')
  }
  const isHidden = namesOf(walk.root, path).some(name => name.startsWith('.'))
  if (isHidden) throw fail('it is a symbolic link to what has a hidden name: put a copy there, or remove it')
  if (!found.isFile() && !found.isDirectory()) throw fail('it is neither a file nor a folder: remove it')
  if (!entry.isSymbolicLink()) return { path, isFolder: found.isDirectory(), over: [] }
  const over = await linkTargets(walk.root, join(folder, entry.name))
  return { path, isFolder: found.isDirectory(), over: over.map(place => namesOf(walk.root, place)) }
}

interface Way {
  /** The folders that it is in, as they are really called. */
  readonly trail: readonly string[]
  /** What links on the way here led over. */
  readonly over: ReadonlyArray<readonly string[]>
}

async function walkFolder(walk: Walk, path: string, names: readonly string[], { trail, over }: Way) {
  const place = walk.shown(names)
  if (names.length > MAX_DEPTH) throw new SkillFault(place, `more than ${MAX_DEPTH} folders are in one another`)
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    throw new SkillFault(place, fileTrouble(error))
  })
  const files: FoundFile[] = []
  const folders: FoundFolder[] = []
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue
    if (++walk.entries > MAX_ENTRIES) throw new TooMany(walk)
    const own = [...names, entry.name]
    try {
      const { path: real, isFolder, over: further } = await follow(walk, path, entry, own)
      const passed = [...over.map(place => [...place, entry.name]), ...further]
      if (!isFolder) files.push({ names: own, path: real, realNames: namesOf(walk.root, real), over: passed })
      else if ([...trail, path].includes(real)) {
        throw new SkillFault(walk.shown(own), 'it is a symbolic link to a folder that it is in: remove it')
      } else folders.push(await walkFolder(walk, real, own, { trail: [...trail, path], over: passed }))
    } catch (error) {
      if (!(error instanceof SkillFault) || error instanceof TooMany) throw error
      walk.tell(error)
    }
  }
  return { names, files, folders }
}

/** Nothing is told beside it. */
class TooMany extends SkillFault {
  constructor({ shown }: Walk) {
    super(shown([]), `more than ${shownCount(MAX_ENTRIES)} files and folders are below it: is it the right folder?`)
  }
}

/**
 * All that is below a folder of skills, which `shown` names in messages. What is wrong with single files is told, and they are
 * left out; rejects with a SkillFault where the folder cannot be walked at all.
 */
export async function walkSkills(
  folder: string,
  shown: (names: readonly string[]) => string,
  tell: (fault: SkillFault) => void,
): Promise<FoundFolder> {
  const place = shown([])
  const root = await realpath(folder).catch((error: unknown) => {
    throw new SkillFault(place, `${fileTrouble(error)}; make the folder, with a folder with a ${SKILL_FILE} in it`)
  })
  if (!(await stat(root)).isDirectory()) throw new SkillFault(place, 'it is no folder')
  return walkFolder({ root, shown, tell, entries: 0 }, root, [], { trail: [], over: [] })
}
