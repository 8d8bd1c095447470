// The skills that the callers of a view are shown: of each the files that they may know of. Made once for a view, of the items
// that are in it, so that all that one call is told is of one version of the folder.
import type { CatalogItem, ResourceItem } from '../../core/auth.ts'
import type { Call } from '../../core/index.ts'
import { placeOf } from './definitions.ts'
import type { FrontMatter } from './front-matter.ts'
import type { Skill } from './read-skills.ts'
import { folderOf, nameOf } from './uris.ts'

type View = Call['view']
type Wire = CatalogItem['wire']

/** A skill as the protocol has it (SEP-2640, "Skill Entries"). */
export interface SkillEntry {
  readonly uri: string
  readonly frontmatter: FrontMatter
  readonly resources: ReadonlyArray<{ readonly uri: string; readonly digest: string; readonly size: number }>
}

/** What is in a folder. */
export interface ShownFolder {
  /** Files as lists show them, and folders, by their URIs. */
  readonly entries: Map<string, Wire>
  /** One of the files below it that its callers may not know of. */
  hidden: ResourceItem | undefined
}

/** What the callers of a view are shown. */
export interface ShownSkills {
  /** Sorted by their URIs. */
  readonly skills: readonly SkillEntry[]
  readonly byUri: ReadonlyMap<string, SkillEntry>
  readonly folders: ReadonlyMap<string, ShownFolder>
}

/** Puts a file into its folder, that into the one above it, and so on. */
function putInFolders(folders: Map<string, ShownFolder>, item: ResourceItem, wire: Wire | undefined) {
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

function build(view: View): ShownSkills {
  const shown = new Set<string>()
  const found: Skill[] = []
  const folders = new Map<string, ShownFolder>()
  for (const item of view.resources.values()) {
    const place = placeOf(item.definition)
    if (!place) continue
    const isShown = view.denialOf(item)?.listed ?? true
    putInFolders(folders, item, isShown ? view.wireOf(item) : undefined)
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

const known = new WeakMap<View, ShownSkills>()

/** What the callers of this view are shown. */
export function shownSkills(view: View): ShownSkills {
  const shown = known.get(view) ?? build(view)
  known.set(view, shown)
  return shown
}
