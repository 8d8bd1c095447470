// Validates a loaded config and reports all problems with lines. The valid part is then checked further.
import { formatPath, type Path } from '../http/errors.ts'
import { type ConfiguredPlugin, isConfiguredPlugin, isPluginFactory } from '../kernel/define-plugin.ts'
import { type Definition, kindOf, labelOf } from '../mcp/definitions/define.ts'
import { isObject } from '../mcp/wire/message.ts'
import { createDefinitionCheck, type FindProblems } from './check-definition.ts'
import { withoutRequired } from './config-schema.ts'
import { hasSettings, isPlain } from './define-config.ts'
import type { Finding } from './explain-problems.ts'
import type { LoadedConfig } from './load-config.ts'
import { type Problem, sortByFile } from './problems.ts'
import { lineOf } from './source-locations.ts'
import { validateValue } from './validate-value.ts'

export { assertNoProblems, formatProblems, type Problem, sortByFile } from './problems.ts'

interface Found<Value> {
  readonly path: Path
  readonly value: Value
}

interface Collected {
  readonly configured: Found<ConfiguredPlugin>[]
  readonly uncalled: Path[]
  readonly definitions: Found<Definition>[]
  readonly absent: Path[]
}

interface CheckSettings {
  /** Checks a definition. Default: for tools without plugin keys. */
  readonly findProblems?: FindProblems
  readonly note?: Note
  /** Receives undefined options whose value names an environment variable that is not set. */
  readonly onUnset?: (variable: string, at: Path) => void
  /** Accepts unknown keys of the config, of routes and of tools, which a missing plugin could declare. */
  readonly isOpen?: boolean
}

/**
 * Returns the problems of a config in file order, including plugin options and inline definitions. Undefined keys count
 * as absent.
 */
export function checkConfig(
  loaded: LoadedConfig,
  schema: object,
  { findProblems = createDefinitionCheck(new Map()), note, onUnset, isOpen = false }: CheckSettings = {},
): Problem[] {
  const collected: Collected = { configured: [], uncalled: [], definitions: [], absent: [] }
  const view = plainView(loaded.config, [], collected)
  const problems = [
    ...checkValue(loaded, [], view, schema, note, isOpen ? isOfPlugin : undefined),
    ...collected.configured.flatMap(({ path, value: { plugin, options } }) => {
      const own = path[0] === 'routes' ? withoutRequired(plugin.options) : plugin.options
      return checkValue(loaded, path, plainView(options, path, collected), own, note)
    }),
    ...collected.uncalled.map(path => {
      note?.({ ...UNCALLED, path })
      return problemAt(loaded, path, { ...UNCALLED, path })
    }),
    ...collected.definitions.flatMap(({ path, value }) => checkDefinition(loaded, path, value, findProblems)),
  ]
  for (const path of collected.absent) {
    const variable = unsetVariableAt(loaded, path)
    if (variable !== undefined) onUnset?.(variable, path)
  }
  return sortByFile(problems)
}

type Note = (finding: Finding) => void

const UNCALLED = {
  kind: 'wrong value',
  found: 'a plugin that is not called',
  expected: 'it called with its options, as in thePlugin({ ... })',
} as const

const isOfPlugin = ({ kind, path }: Finding) =>
  kind === 'unknown option' && (path.length === 1 || (path.length === 3 && path[0] === 'routes'))

export function checkValue(
  loaded: LoadedConfig,
  at: Path,
  value: unknown,
  schema: object,
  note?: Note,
  isLeftOut: (finding: Finding) => boolean = () => false,
): Problem[] {
  const findings = validateValue(value, schema, at).filter(finding => !isLeftOut(finding))
  for (const finding of findings) note?.(finding)
  return findings.map(finding => problemAt(loaded, finding.path, finding))
}

export function checkDefinition(
  loaded: Pick<LoadedConfig, 'file' | 'locate'>,
  at: Path,
  definition: Definition,
  findProblems: FindProblems,
) {
  return findProblems(definition).map(finding => {
    const problem = problemAt(loaded, [...at, ...finding.path], finding)
    return { ...problem, path: `${problem.path} (${labelOf(definition)})` }
  })
}

function problemAt(loaded: Pick<LoadedConfig, 'file' | 'locate'>, at: Path, { path: _, ...finding }: Finding): Problem {
  const line = lineOf(loaded, at)
  const unset = /^(NaN|nothing|null|an empty string)\b/.exec(finding.found) && unsetVariableAt(loaded, at)
  const found = unset ? `nothing, because the environment variable ${unset} is not set` : finding.found
  return { ...finding, found, file: loaded.file, path: formatPath(at), ...(line !== undefined && { line }) }
}

function unsetVariableAt({ locate }: Pick<LoadedConfig, 'locate'>, at: Path): string | undefined {
  const text = locate.textAt?.(at) ?? ''
  const names = [...text.matchAll(/\bprocess\.env(?:\.|\[['"])(\w+)/g)].map(([, name = '']) => name)
  return names.find(name => !process.env[name])
}

function plainView(value: unknown, path: Path, held: Collected, parents: readonly unknown[] = []): unknown {
  const isDefinition = kindOf(value) !== undefined
  if (isDefinition && path[0] === 'toolsets') held.definitions.push({ path, value: value as Definition })
  const isOpaque = path[0] === 'toolsets' && path.length > 1 && !Array.isArray(value) && !hasSettings(value)
  if (isOpaque || isDefinition || parents.includes(value)) return value
  const view = (item: unknown, key: string | number) => plainView(item, [...path, key], held, [...parents, value])
  const isUnset = (item: unknown) => item === undefined
  if (`${path}` === 'secrets' && Array.isArray(value) && value.every(isUnset)) held.absent.push([...path, 0])
  if (Array.isArray(value)) return Array.from(value, (item, index) => (item === undefined ? null : view(item, index)))
  if (!isPlain(value)) return value
  const entries = Object.entries(value).filter(([key, item]) => {
    if (item === undefined) held.absent.push([...path, key])
    if (!isPluginPath(path)) return item !== undefined
    if (isConfiguredPlugin(item)) held.configured.push({ path: [...path, key], value: item })
    else if (isPluginFactory(item)) held.uncalled.push([...path, key])
    else return item !== undefined
    return false
  })
  return Object.fromEntries(entries.map(([key, item]) => [key, view(item, key)]))
}

const isPluginPath = (path: Path): boolean =>
  (path.length === 1 && path[0] === 'plugins') || (path.length === 3 && path[0] === 'routes' && path[2] === 'plugins')

interface ValidPart {
  readonly config: Readonly<Record<string, unknown>>
  /** True if keys that the plugin can read are invalid. Such a plugin is planned but not set up. */
  readonly hasInvalidOptions: (plugin: string) => boolean
}

type Fault = Pick<Finding, 'kind' | 'path' | 'suggestion'>
type Draft = Record<string, unknown>

const READ_BY_HOST: ReadonlySet<unknown> = new Set(['server', 'tools', 'sessions', 'toolsets', 'routes', 'plugins'])

function replaceAt(value: unknown, [key, ...rest]: Path, by?: unknown): unknown {
  if (key === undefined) return by
  if (!isObject(value)) return value
  const { [key]: inner, ...others } = value
  const next = replaceAt(inner, rest, by)
  return next === undefined ? others : { ...others, [key]: next }
}

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), value)

const isOptions = (value: unknown) => isObject(value) || value === false || value === undefined

function replacementFor({ kind, path }: Fault, config: Draft): readonly [Path, unknown?] {
  const [key, name, inner, plugin] = path
  const isUnknownKey = kind === 'unknown option' && path.length === 1
  if (isUnknownKey) return [path]
  if (key === 'server') return [['server'], { name: 'unnamed', version: '0' }]
  if (key === 'plugins') {
    if (name === undefined) return [path, {}]
    return isOptions(valueAt(config, path.slice(0, 2))) ? [[]] : [path.slice(0, 2), {}]
  }
  if (key === 'toolsets') return name === undefined ? [path, {}] : [[]]
  if (key !== 'routes') return [path.slice(0, 2)]
  if (name === undefined) return [path, {}]
  if (inner === undefined) return [path]
  if (inner === 'toolsets') return [path.slice(0, 3), []]
  if (inner !== 'plugins' || plugin === undefined) return [path.slice(0, 3)]
  return isOptions(valueAt(config, path.slice(0, 4))) ? [[]] : [path.slice(0, 4)]
}

export function withoutProblems(config: unknown, faults: readonly Fault[]): ValidPart | undefined {
  if (!isObject(config) || faults.some(({ path }) => path.length === 0)) return undefined
  let left: Draft = { ...config }
  const named = new Set<unknown>()
  let isAnyInvalid = false
  for (const fault of faults) {
    const [key, name, inner, plugin] = fault.path
    if (key === 'plugins') named.add(name)
    if (key === 'routes' && inner === 'plugins') named.add(plugin)
    const isMeant = fault.kind !== 'unknown option' || fault.path.length > 1 || fault.suggestion !== undefined
    if (!READ_BY_HOST.has(key) && isMeant) isAnyInvalid = true
    const [at, by] = replacementFor(fault, left)
    if (at.length > 0) left = replaceAt(left, at, by) as Draft
    if (key === 'toolsets' && name === undefined) {
      const routes = Object.entries(isObject(left['routes']) ? left['routes'] : {})
      // Without this, each route would report its toolsets as unknown.
      left['routes'] = Object.fromEntries(
        routes.map(([path, route]) => [path, isObject(route) ? { ...route, toolsets: [], default: undefined } : route]),
      )
    }
  }
  const hasInvalidOptions = (plugin: string) => isAnyInvalid || named.has(undefined) || named.has(plugin)
  return { config: left, hasInvalidOptions }
}
