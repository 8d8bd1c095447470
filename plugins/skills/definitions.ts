// The files of skills as resources. A large file is read for each request, and refused if its digest changed.
import { defineResource, type ResourceDefinition, ToolError } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { readFile } from './read-file.ts'
import type { Skill, SkillFile } from './read-skills.ts'

const DIGEST = 'io.modelcontextprotocol.skills/digest'

export interface Snapshot {
  readonly skills: readonly Skill[]
  readonly resources: readonly ResourceDefinition[]
  readonly definitions: ReadonlyMap<string, ResourceDefinition>
}

const skillFiles = new WeakMap<ResourceDefinition, { readonly file: SkillFile; readonly skill: Skill | undefined }>()

/** Returns the file of a resource, and its skill if it is a SKILL.md; undefined for other resources. */
export const skillFileOf = (definition: ResourceDefinition) => skillFiles.get(definition)

async function bytesOf({ path, uri, digest, size, bytes }: SkillFile, log: InternalHost['log']): Promise<Buffer> {
  if (bytes) return bytes
  const read = await readFile(path, size).catch((err: unknown) => {
    log.error({ code: 'MH2912', err, uri }, 'a file of a skill cannot be read')
  })
  if (read?.digest === digest && read.bytes) return read.bytes
  if (read)
    log.error(
      { code: 'MH2913', uri, listed: digest, found: read.digest },
      'A skill file has changed: reload the config',
    )
  throw new ToolError('the file has changed since it was listed; reload the server')
}

function define(file: SkillFile, skill: Skill | undefined, log: InternalHost['log']): ResourceDefinition {
  const { uri, name, mimeType, asText, size, digest } = file
  const definition = defineResource({
    uri,
    name: skill?.frontMatter.name ?? name,
    ...(skill && { description: skill.frontMatter.description }),
    mimeType,
    size,
    _meta: { [DIGEST]: digest },
    async handler() {
      const bytes = await bytesOf(file, log)
      return asText ? bytes.toString('utf8') : bytes
    },
  })
  skillFiles.set(definition, { file, skill })
  return definition
}

export function snapshotOf(skills: readonly Skill[], log: InternalHost['log']): Snapshot {
  const byUri = new Map(skills.map(skill => [skill.uri, skill]))
  const definitions = new Map<string, ResourceDefinition>()
  for (const { files } of skills) {
    for (const file of files) {
      if (!definitions.has(file.uri)) definitions.set(file.uri, define(file, byUri.get(file.uri), log))
    }
  }
  return { skills, resources: [...definitions.values()], definitions }
}

const fileAt = ({ definitions }: Snapshot, uri: string) => {
  const definition = definitions.get(uri)
  return definition && skillFiles.get(definition)?.file
}

/** Returns the URIs of files that differ. `moved`: also of files whose path differs. */
export const changedBetween = (one: Snapshot, other: Snapshot, moved = false): string[] =>
  [...new Set([...one.definitions.keys(), ...other.definitions.keys()])].filter(uri => {
    const [before, after] = [fileAt(one, uri), fileAt(other, uri)]
    return before?.digest !== after?.digest || (moved && before?.path !== after?.path)
  })
