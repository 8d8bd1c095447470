// Names of upstream tools and prompts, and filters for them.
import { matchesGlob } from '../../core/auth.ts'
import { isObject } from '../../core/plugin.ts'
import { HASH_LENGTH, hashOf, MAX_NAME, visibleLine } from '../families/texts/index.ts'
import type { Item } from './lists.ts'
import type { UpstreamToolOverride } from './options.ts'
import type { ServerSettings } from './settings.ts'

const VALID = /^[A-Za-z0-9_.-]+$/

/**
 * Shortens a name and replaces invalid characters. A changed name ends with a hash of the original name. It is therefore unique, and
 * does not depend on other tools.
 */
function fitName(name: string): string {
  if (name.length <= MAX_NAME && VALID.test(name)) return name
  return `${name.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hashOf(name)}`
}

export const toolName = ({ prefix, overrides }: Pick<ServerSettings, 'prefix' | 'overrides'>, name: string): string =>
  (Object.hasOwn(overrides, name) ? overrides[name]?.name : undefined) ?? fitName(`${prefix}${name}`)

export const promptName = ({ prefix }: Pick<ServerSettings, 'prefix'>, name: string): string =>
  fitName(`${prefix}${name}`)

/** Returns names of tools or prompts, with the prefix, that are too long or have characters that clients refuse. */
export const invalidNames = (prefix: string, names: readonly string[]): string[] =>
  names.map(name => `${prefix}${name}`).filter(name => fitName(name) !== name)

/** Maximum characters of a label. */
const MAX_LABEL = 200

/** Returns a label for messages, such as `tool search`. */
export const labelOf = (kind: string, name: unknown): string => visibleLine(`${kind} ${name}`).slice(0, MAX_LABEL)

const fits = (globs: readonly string[], text: string) => globs.some(glob => matchesGlob(glob, text))

/** True if `include` and `exclude` select a tool, by its name at the server. */
export const isIncluded = ({ include, exclude }: Pick<ServerSettings, 'include' | 'exclude'>, name: string): boolean =>
  (include === undefined || fits(include, name)) && !fits(exclude, name)

/** Returns filters and `overrides` that match no tool or argument of the server, such as `include "serach"`. */
export function unmatchedFilters(
  { include, exclude, overrides }: Pick<ServerSettings, 'include' | 'exclude' | 'overrides'>,
  tools: readonly Item[],
): string[] {
  const byName = new Map(tools.map(tool => [String(tool['name']), tool]))
  const names = [...byName.keys()]
  const unmatched = (option: string, globs: readonly string[]) =>
    globs.filter(glob => !names.some(name => matchesGlob(glob, name))).map(glob => `${option} "${glob}"`)
  return [
    ...(include?.length === 0 ? ['include []'] : unmatched('include', include ?? [])),
    ...unmatched('exclude', exclude),
    ...Object.entries(overrides).flatMap(([name, override]) => {
      const tool = byName.get(name)
      if (!tool) return [`overrides "${name}"`]
      return unknownArguments(tool['inputSchema'], override.arguments).map(
        one => `overrides "${name}" argument "${one}"`,
      )
    }),
  ]
}

/** Keywords that can declare properties in other places. */
const COMPOSING = ['$ref', 'allOf', 'anyOf', 'oneOf']

/** Returns overridden arguments that are not in `properties`. Empty if another keyword can declare them. */
export function unknownArguments(schema: unknown, overrides: UpstreamToolOverride['arguments'] = {}): string[] {
  if (!isObject(schema) || !isObject(schema['properties']) || COMPOSING.some(key => Object.hasOwn(schema, key)))
    return []
  const { properties } = schema
  return Object.keys(overrides).filter(name => !Object.hasOwn(properties, name))
}

const isRestricting = ({ access, arguments: args = {} }: UpstreamToolOverride): boolean =>
  access !== undefined || Object.values(args).some(one => 'value' in one)

/** True if an override with `access` or a fixed argument matches no tool: the tool may have a new name, without its restrictions. */
export const isRestrictionLost = ({ overrides }: Pick<ServerSettings, 'overrides'>, tools: readonly Item[]): boolean =>
  Object.entries(overrides).some(
    ([name, override]) => isRestricting(override) && !tools.some(tool => tool['name'] === name),
  )

export const isServed = (setting: boolean | readonly string[], text: string): boolean =>
  typeof setting === 'boolean' ? setting : fits(setting, text)
