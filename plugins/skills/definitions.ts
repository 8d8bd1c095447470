// The files of skills as resources: each is served as it was listed, byte for byte. What is too large to be kept is read for
// each answer, and answered where it is still what its digest says.
import { defineResource, type PluginHost, type ResourceDefinition, ToolError } from '../../core/index.ts'
import { setOtherNames } from '../families/other-names/index.ts'
import { readFile } from './read-file.ts'
import type { Skill, SkillFile } from './read-skills.ts'

/** Of the prefix that is reserved for what skills say of their resources. */
const DIGEST = 'io.modelcontextprotocol.skills/digest'

/** A folder of skills, read. */
export interface Snapshot {
  readonly skills: readonly Skill[]
  /** Their files, each once. */
  readonly resources: readonly ResourceDefinition[]
  /** The same, by the URI of the file. */
  readonly definitions: ReadonlyMap<string, ResourceDefinition>
}

const places = new WeakMap<ResourceDefinition, { readonly file: SkillFile; readonly skill: Skill | undefined }>()

/** Which file of a skill a resource is, and which skill where it is a SKILL.md; undefined: it is another's. */
export const placeOf = (definition: ResourceDefinition) => places.get(definition)

async function bytesOf({ path, uri, digest, size, bytes }: SkillFile, log: PluginHost['log']): Promise<Buffer> {
  if (bytes) return bytes
  const read = await readFile(path, size).catch((err: unknown) => {
    log.error({ err, uri }, 'a file of a skill cannot be read')
  })
  if (read?.digest === digest && read.bytes) return read.bytes
  if (read)
    log.error(
      { uri, listed: digest, found: read.digest },
      'a file of a skill has changed: reload, so that it is listed anew',
    )
  throw new ToolError('the file is not what was listed any more; the server has to be reloaded')
}

function define(file: SkillFile, skill: Skill | undefined, log: PluginHost['log']): ResourceDefinition {
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
  places.set(definition, { file, skill })
  setOtherNames(definition, file.also)
  return definition
}

/** What is served of these skills. */
export function snapshotOf(skills: readonly Skill[], log: PluginHost['log']): Snapshot {
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
  return definition && places.get(definition)?.file
}

const placeText = (file: SkillFile | undefined) => JSON.stringify([file?.path, file?.also])

/** The files that are not the same in both, by their URIs; `moved`: nor are where they lie and what else they are called. */
export const changedBetween = (one: Snapshot, other: Snapshot, moved = false): string[] =>
  [...new Set([...one.definitions.keys(), ...other.definitions.keys()])].filter(uri => {
    const [before, after] = [fileAt(one, uri), fileAt(other, uri)]
    return before?.digest !== after?.digest || (moved && placeText(before) !== placeText(after))
  })
