// The methods `skills/list`, `skills/get` and `resources/directory/read`, with the access checks of resource reads.

import type { ResourceItem } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import type { Call, CatalogItem } from '../../core/plugin.ts'
import { checkUri, shown } from '../../core/transport.ts'
import { skillFileOf } from './definitions.ts'
import type { FrontMatter } from './front-matter.ts'
import type { Skill } from './read-skills.ts'
import { folderOf, nameOf } from './walk.ts'

/** Maximum skills, and JSON bytes, on a page of `skills/list`; at least one skill. */
const PAGE_SKILLS = 100
const PAGE_BYTES = 1024 * 1024
const PAGE_ENTRIES = 500

type View = Call['view']
type Wire = CatalogItem['wire']

/** An entry of SEP-2640, "Skill Entries". */
interface SkillEntry {
  readonly uri: string
  readonly frontmatter: FrontMatter
  readonly resources: ReadonlyArray<{ readonly uri: string; readonly digest: string; readonly size: number }>
}

interface ShownFolder {
  readonly entries: Map<string, Wire>
  /** A file in the folder that the caller cannot see. */
  hidden: ResourceItem | undefined
}

interface ShownSkills {
  readonly skills: readonly SkillEntry[]
  readonly byUri: ReadonlyMap<string, SkillEntry>
  readonly folders: ReadonlyMap<string, ShownFolder>
}

function addToFolders(folders: Map<string, ShownFolder>, item: ResourceItem, wire: Wire | undefined) {
  let child = item.key
  let entry = wire
  for (let uri = folderOf(child); uri !== undefined; uri = folderOf(child)) {
    const folder = folders.get(uri) ?? { entries: new Map<string, Wire>(), hidden: undefined }
    folders.set(uri, folder)
    if (entry) folder.entries.set(child, entry)
    else folder.hidden ??= item
    child = uri
    entry &&= { uri, name: nameOf(uri), mimeType: 'inode/directory' }
  }
}

function createView(view: View): ShownSkills {
  const shown = new Set<string>()
  const found: Skill[] = []
  const folders = new Map<string, ShownFolder>()
  for (const item of view.resources.values()) {
    const place = skillFileOf(item.definition)
    if (!place) continue
    const isShown = view.denialOf(item)?.listed ?? true
    addToFolders(folders, item, isShown ? view.wireOf(item) : undefined)
    if (!isShown) continue
    shown.add(item.key)
    if (place.skill) found.push(place.skill)
  }
  const skills = found.map(({ uri, frontMatter, files }): SkillEntry => {
    const resources = files.filter(file => shown.has(file.uri)).map(({ uri, digest, size }) => ({ uri, digest, size }))
    return { uri, frontmatter: frontMatter, resources }
  })
  return { skills, byUri: new Map(skills.map(skill => [skill.uri, skill])), folders }
}

const cache = new WeakMap<View, ShownSkills>()

function shownSkills(view: View): ShownSkills {
  const shown = cache.get(view) ?? createView(view)
  cache.set(view, shown)
  return shown
}

type Authorize = (call: Call, item: CatalogItem) => void
type Answer = (call: Call) => object

/** Milliseconds that clients can cache a result, as for lists of the protocol. */
const TTL = 60_000

const cacheHints = ({ modern, view }: Call) => (modern ? { ttlMs: TTL, cacheScope: view.cacheScope } : {})

const invalid = (detail: string) => new HostError('invalidParams', { detail })

function readUri({ params }: Call, what: string): string {
  const { uri } = params
  if (typeof uri !== 'string') throw invalid(`\`params.uri\` must be the URI of ${what}`)
  checkUri(uri)
  return uri
}

const PREFIX = 'after:'
const cursorAfter = (uri: string) => Buffer.from(`${PREFIX}${uri}`).toString('base64url')

/** Returns the first index of a page: after the last URI of the previous page, even if it was removed. */
function pageStart(uris: readonly string[], cursor: unknown): number {
  if (cursor === undefined) return 0
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString() : ''
  if (!text.startsWith(PREFIX)) throw invalid('the cursor was not issued by this host')
  const after = text.slice(PREFIX.length)
  const at = uris.findIndex(uri => uri > after)
  return at === -1 ? uris.length : at
}

const sizes = new WeakMap<SkillEntry, number>()

function sizeOf(skill: SkillEntry): number {
  const size = sizes.get(skill) ?? JSON.stringify(skill).length
  sizes.set(skill, size)
  return size
}

function pageEnd(skills: readonly SkillEntry[], from: number): number {
  let bytes = 0
  let at = from
  for (; at < skills.length && at - from < PAGE_SKILLS; at++) {
    const skill = skills[at]
    bytes += skill ? sizeOf(skill) : 0
    if (bytes > PAGE_BYTES && at > from) break
  }
  return at
}

function listSkills(call: Call): object {
  const { skills } = shownSkills(call.view)
  const from = pageStart(
    skills.map(({ uri }) => uri),
    call.params['cursor'],
  )
  const to = pageEnd(skills, from)
  const last = to < skills.length ? skills[to - 1] : undefined
  return { skills: skills.slice(from, to), ...(last && { nextCursor: cursorAfter(last.uri) }), ...cacheHints(call) }
}

const getSkill =
  (authorize: Authorize): Answer =>
  call => {
    const uri = readUri(call, 'the SKILL.md of a skill')
    const item = call.view.resources.get(uri)
    if (item && skillFileOf(item.definition)?.skill) authorize(call, item)
    const skill = shownSkills(call.view).byUri.get(uri)
    if (!skill) throw new HostError('invalidParams', { detail: `no skill is served at ${shown(uri)}`, data: { uri } })
    return { skill, ...cacheHints(call) }
  }

const readFolder =
  (authorize: Authorize): Answer =>
  call => {
    const uri = readUri(call, 'a folder')
    const folder = shownSkills(call.view).folders.get(uri)
    if (!folder) {
      const isThere = call.view.resources.has(uri)
      const detail = isThere ? `${shown(uri)} is not a folder` : `no folder is served at ${shown(uri)}`
      throw new HostError('invalidParams', { detail, data: { uri } })
    }
    const { entries, hidden } = folder
    if (entries.size === 0 && hidden) authorize(call, hidden)
    const uris = [...entries.keys()].sort()
    const from = pageStart(uris, call.params['cursor'])
    const page = uris.slice(from, from + PAGE_ENTRIES)
    const last = from + PAGE_ENTRIES < uris.length ? page.at(-1) : undefined
    return {
      resources: page.map(one => entries.get(one)),
      ...(last !== undefined && { nextCursor: cursorAfter(last) }),
    }
  }

export const createMethods = (authorize: Authorize): Readonly<Record<string, Answer>> => ({
  'skills/list': listSkills,
  'skills/get': getSkill(authorize),
  'resources/directory/read': readFolder(authorize),
})
