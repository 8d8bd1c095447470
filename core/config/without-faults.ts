// Removes the invalid parts of a config, so that later checks report their problems in the same run. For create-host.ts; a host
// is never served from the result.
import type { Path } from '../http/errors.ts'
import { isObject } from '../mcp/is-object.ts'
import type { Finding } from './explain-problems.ts'

export interface SoundPart {
  readonly config: Readonly<Record<string, unknown>>
  /** Whether the plugin's options, or keys that it can read, are invalid. Such a plugin is planned, but not set up. */
  readonly isUnsound: (plugin: string) => boolean
}

type Fault = Pick<Finding, 'kind' | 'path' | 'suggestion'>
type Draft = Record<string, unknown>

/** Top-level keys that no plugin reads. */
const READ_BY_HOST: ReadonlySet<unknown> = new Set(['server', 'tools', 'sessions', 'toolsets', 'routes', 'plugins'])

/** A copy with the value at a path replaced, or removed if `by` is undefined. All other values are shared. */
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

/** The path to replace, and its new value. An empty path: nothing is replaced. */
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

/** Undefined if the config as a whole is not an object. */
export function withoutFaults(config: unknown, faults: readonly Fault[]): SoundPart | undefined {
  if (!isObject(config) || faults.some(({ path }) => path.length === 0)) return undefined
  let left: Draft = { ...config }
  const named = new Set<unknown>()
  let isAnyUnsound = false
  for (const fault of faults) {
    const [key, name, inner, plugin] = fault.path
    if (key === 'plugins') named.add(name)
    if (key === 'routes' && inner === 'plugins') named.add(plugin)
    // An unknown key with a suggestion is probably a typo of that key.
    const isMeant = fault.kind !== 'unknown option' || fault.path.length > 1 || fault.suggestion !== undefined
    if (!READ_BY_HOST.has(key) && isMeant) isAnyUnsound = true
    const [at, by] = replacementFor(fault, left)
    if (at.length > 0) left = replaceAt(left, at, by) as Draft
    if (key === 'toolsets' && name === undefined) {
      const routes = Object.entries(isObject(left['routes']) ? left['routes'] : {})
      // Without toolsets, each route would report its toolsets as unknown.
      left['routes'] = Object.fromEntries(
        routes.map(([path, route]) => [path, isObject(route) ? { ...route, toolsets: [], default: undefined } : route]),
      )
    }
  }
  const isUnsound = (plugin: string) => isAnyUnsound || named.has(undefined) || named.has(plugin)
  return { config: left, isUnsound }
}
