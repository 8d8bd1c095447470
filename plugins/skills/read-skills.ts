// Reads the skills in a folder: each folder with a SKILL.md, also inside other skills.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { isObject } from '../../core/plugin.ts'
import { cutOut, type FrontMatter, FrontMatterError, readFrontMatter } from './front-matter.ts'
import { forEachOf, MAX_BYTES, type ReadFile, readFile } from './read-file.ts'
import {
  type FoundFile,
  type FoundFolder,
  fileProblem,
  formatCount,
  SKILL_FILE,
  SkillError,
  uriOf,
  walkSkills,
} from './walk.ts'

/** Files of a skill, including those of skills inside (SEP-2640, "Limits"). */
const MAX_FILES = 512
const MAX_FRONT_MATTER_IN_ALL = 4 * 1024 * 1024
/** Maximum bytes in memory, per file and in total. Larger files are read for each request. */
const MAX_CACHED = 1024 * 1024
const MAX_CACHE = 64 * 1024 * 1024

const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['md', 'text/markdown'],
  ['txt', 'text/plain'],
  ['html', 'text/html'],
  ['css', 'text/css'],
  ['csv', 'text/csv'],
  ['xml', 'application/xml'],
  ['svg', 'image/svg+xml'],
  ['json', 'application/json'],
  ['jsonl', 'application/jsonl'],
  ['yaml', 'application/yaml'],
  ['yml', 'application/yaml'],
  ['toml', 'application/toml'],
  ['js', 'text/javascript'],
  ['mjs', 'text/javascript'],
  ['ts', 'text/x-typescript'],
  ['py', 'text/x-python'],
  ['sh', 'application/x-sh'],
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['pdf', 'application/pdf'],
  ['zip', 'application/zip'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
])

const TEXT = /^text\/|[/+](?:json|xml|yaml|jsonl|toml|x-sh)$/

/** Returns the media type of a file, and whether it is sent as text. `isText`: the bytes are UTF-8. */
function mediaTypeOf(name: string, isText: boolean): { readonly mimeType: string; readonly asText: boolean } {
  const [, extension = ''] = /\.([^.]+)$/.exec(name) ?? []
  const known = BY_EXTENSION.get(extension.toLowerCase())
  if (known === undefined) return { mimeType: isText ? 'text/plain' : 'application/octet-stream', asText: isText }
  return { mimeType: known, asText: isText && TEXT.test(known) }
}

export interface SkillFile {
  readonly uri: string
  readonly name: string
  readonly mimeType: string
  readonly asText: boolean
  readonly digest: string
  readonly size: number
  /** Undefined if too large to keep in memory. */
  readonly bytes: Buffer | undefined
  readonly path: string
}

export interface Skill {
  readonly uri: string
  readonly frontMatter: FrontMatter
  readonly names: readonly string[]
  readonly files: readonly SkillFile[]
}

interface FoundSkill {
  readonly folder: FoundFolder
  readonly files: readonly FoundFile[]
}

type Report = (fault: SkillError) => void
type Format = (names: readonly string[]) => string

const nameIn = ({ names }: { readonly names: readonly string[] }) => names.at(-1) ?? ''
const isSkillFile = (file: FoundFile) => nameIn(file) === SKILL_FILE
const filesBelow = ({ files, folders }: FoundFolder): FoundFile[] => [...files, ...folders.flatMap(filesBelow)]
const byUri = (a: { readonly uri: string }, b: { readonly uri: string }) => (a.uri < b.uri ? -1 : a.uri > b.uri ? 1 : 0)

function findSkills(folder: FoundFolder, shown: Format, report: Report, isInSkill = false): FoundSkill[] {
  const isSkill = folder.files.some(isSkillFile)
  const alike = folder.files.find(file => nameIn(file).toLowerCase() === SKILL_FILE.toLowerCase())
  if (isSkill && folder.names.length === 0) {
    const what = `it is in the folder of the skills itself: use the parent folder, because a skill has the name of its folder`
    throw new SkillError(shown([SKILL_FILE]), what)
  }
  if (!isSkill && !isInSkill && alike)
    report(new SkillError(shown(alike.names), `rename it to ${SKILL_FILE} (case-sensitive)`))
  const inner = folder.folders.flatMap(one => findSkills(one, shown, report, isSkill || isInSkill))
  return isSkill ? [{ folder, files: filesBelow(folder) }, ...inner] : inner
}

async function readSizes(files: Iterable<FoundFile>): Promise<Map<FoundFile, number>> {
  const sizes = new Map<FoundFile, number>()
  await forEachOf(files, async file => {
    const found = await stat(file.path).catch(() => undefined)
    if (found) sizes.set(file, found.size)
  })
  return sizes
}

async function checkSizes(skills: readonly FoundSkill[], shown: Format, report: Report) {
  const large = skills.filter(({ files }) => files.length > MAX_FILES)
  for (const { folder, files } of large) {
    const count = `the skill has ${formatCount(files.length)} files`
    report(new SkillError(shown(folder.names), `${count}; at most ${MAX_FILES} are supported: split the skill`))
  }
  if (large.length > 0) return
  const sizes = await readSizes(new Set(skills.flatMap(({ files }) => files)))
  for (const { folder, files } of skills) {
    const bytes = files.reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0)
    if (bytes <= MAX_BYTES) continue
    const most = `at most ${formatCount(MAX_BYTES)} (16 MiB) are supported`
    const what = `the files of the skill have ${formatCount(bytes)} bytes; ${most}: remove some, or split the skill`
    report(new SkillError(shown(folder.names), what))
  }
}

/** Reports names that are equal on disks that ignore case or Unicode composition. */
function checkNames(files: Iterable<FoundFile>, shown: Format, report: Report) {
  const seen = new Map<string, FoundFile>()
  for (const file of files) {
    const folded = file.names.map(name => name.normalize('NFC').toLowerCase()).join('/')
    const twin = seen.get(folded)
    if (twin)
      report(new SkillError(shown(file.names), `on many disks it is the same as ${shown(twin.names)}: rename one`))
    seen.set(folded, file)
  }
}

function createFile(found: FoundFile, read: ReadFile, bytes: Buffer | undefined): SkillFile {
  const name = nameIn(found)
  const { digest, size, isText } = read
  return {
    uri: uriOf(found.names),
    name,
    ...mediaTypeOf(name, isText),
    digest,
    size,
    bytes,
    path: found.path,
  }
}

interface Read {
  readonly file: SkillFile
  readonly frontMatter?: FrontMatter
}

/** Reads each file once. Hard links are refused: a policy rule applies to one name of a file only. */
async function readFiles(files: Iterable<FoundFile>, shown: Format, report: Report): Promise<Map<FoundFile, Read>> {
  const found = new Map<FoundFile, Read>()
  const frontMatterOf = createFrontMatterReader()
  const names = new Map<string, string>()
  let kept = 0
  await forEachOf(files, async file => {
    try {
      const read = await readFile(file.path, isSkillFile(file) ? MAX_BYTES : MAX_CACHED)
      const twin = names.get(read.id)
      if (twin !== undefined) {
        return report(new SkillError(shown(file.names), `it is a hard link of ${twin}: put a copy there instead`))
      }
      names.set(read.id, shown(file.names))
      const fits = read.size <= MAX_CACHED && kept + read.size <= MAX_CACHE
      if (fits) kept += read.size
      const frontMatter = isSkillFile(file) ? await frontMatterOf(file, read) : undefined
      const own = createFile(file, read, fits ? read.bytes : undefined)
      found.set(file, { file: own, ...(frontMatter && { frontMatter }) })
    } catch (error) {
      const isOurs = error instanceof FrontMatterError
      report(
        new SkillError(shown(file.names), isOurs ? error.message : fileProblem(error), isOurs ? error.line : undefined),
      )
    }
  })
  return found
}

/** Reads front matter, yielding to the event loop in between, up to a total size. */
function createFrontMatterReader() {
  let bytesInAll = 0
  return async ({ names }: FoundFile, { bytes, isText }: ReadFile): Promise<FrontMatter> => {
    if (!bytes || !isText) throw new FrontMatterError('it is not UTF-8: save it as UTF-8', 1)
    const yaml = cutOut(bytes.toString('utf8'))
    bytesInAll += Buffer.byteLength(yaml)
    if (bytesInAll > MAX_FRONT_MATTER_IN_ALL) {
      const most = `at most ${formatCount(MAX_FRONT_MATTER_IN_ALL)} below one folder`
      throw new FrontMatterError(`the front matter of all skills has more bytes than are read, ${most}: shorten it`, 1)
    }
    await yieldToOthers()
    return readFrontMatter(yaml, names.at(-2) ?? '')
  }
}

/** Prefix of `metadata` keys for extensions of MCP. */
const RESERVED = 'io.modelcontextprotocol/'
/** Maximum characters of such a key. */
const MAX_SHOWN = 160

export function findWarnings(skills: readonly Skill[], written: string): SkillError[] {
  const issues: SkillError[] = []
  const byName = new Map<string, string>()
  for (const { frontMatter, names } of skills) {
    const place = join(written, ...names)
    const { name, metadata } = frontMatter
    const other = byName.get(name)
    if (other !== undefined) {
      issues.push(new SkillError(place, `${other} has the same name: some clients cannot distinguish them`))
    }
    byName.set(name, place)
    const key = isObject(metadata) ? Object.keys(metadata).find(one => one.startsWith(RESERVED)) : undefined
    if (key !== undefined)
      issues.push(new SkillError(place, `metadata "${key.slice(0, MAX_SHOWN)}": ${RESERVED} is for extensions of MCP`))
  }
  return issues
}

export async function readSkills(
  folder: string,
  written: string,
  report: (fault: SkillError) => void,
): Promise<readonly Skill[] | undefined> {
  const faults: SkillError[] = []
  const collect: Report = fault => void faults.push(fault)
  const shown: Format = names => join(written, ...names)
  const skills = await readAll(folder, shown, collect).catch((error: unknown) => {
    if (!(error instanceof SkillError)) throw error
    collect(error)
  })
  for (const fault of faults.sort((a, b) => (a.message < b.message ? -1 : 1))) report(fault)
  return faults.length === 0 && skills ? skills : undefined
}

async function readAll(folder: string, shown: Format, report: Report): Promise<Skill[]> {
  const whole = await walkSkills(folder, shown, report)
  const found = findSkills(whole, shown, report)
  if (found.length === 0) {
    throw new SkillError(shown([]), `no folder in it has a ${SKILL_FILE}: add a skill, or disable the plugin`)
  }
  let faults = 0
  await checkSizes(found, shown, fault => {
    faults++
    report(fault)
  })
  if (faults > 0) return []
  const files = new Set(found.flatMap(skill => skill.files))
  checkNames(files, shown, report)
  const read = await readFiles(files, shown, report)
  const skills = found.flatMap(({ folder: { files }, files: all }): Skill[] => {
    const own = files.find(isSkillFile)
    const { file, frontMatter } = (own && read.get(own)) ?? {}
    if (!file || !frontMatter) return []
    return [
      {
        uri: file.uri,
        frontMatter,
        names: own?.names ?? [],
        files: all.flatMap(one => read.get(one)?.file ?? []).sort(byUri),
      },
    ]
  })
  return skills.sort(byUri)
}
