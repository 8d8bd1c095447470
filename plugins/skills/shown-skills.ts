// The skills and files that are visible in a view, built once per view for consistent results.

import type { ResourceItem } from '../../core/auth.ts'
import type { Call, CatalogItem } from '../../core/plugin.ts'
import { placeOf } from './definitions.ts'
import type { FrontMatter } from './front-matter.ts'
import type { Skill } from './read-skills.ts'
import { folderOf, nameOf } from './walk.ts'

type View = Call['view']
type Wire = CatalogItem['wire']

/** An entry of SEP-2640, "Skill Entries". */
export interface SkillEntry {
  readonly uri: string
  readonly frontmatter: FrontMatter
  readonly resources: ReadonlyArray<{ readonly uri: string; readonly digest: string; readonly size: number }>
}

interface ShownFolder {
  readonly entries: Map<string, Wire>
  /** A file in the folder that the callers cannot see. */
  hidden: ResourceItem | undefined
}

interface ShownSkills {
  readonly skills: readonly SkillEntry[]
  readonly byUri: ReadonlyMap<string, SkillEntry>
  readonly folders: ReadonlyMap<string, ShownFolder>
}

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

export function shownSkills(view: View): ShownSkills {
  const shown = known.get(view) ?? build(view)
  known.set(view, shown)
  return shown
}
