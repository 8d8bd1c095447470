// Applies a newer config to a running host, completely or not at all. Changes that require a restart are reported.
import { inspect, isDeepStrictEqual } from 'node:util'
import { route } from './config/config-schema.ts'
import { type FilledConfig, isPlain, sourceOf } from './config/define-config.ts'
import type { LoadedConfig } from './config/load-config.ts'
import type { BuiltHost, Host, HostParts, ReloadReport } from './host.ts'
import { formatPath, type Path } from './http/errors.ts'
import type { Logger } from './kernel/log.ts'
import type { PluginInstance } from './kernel/plugin-plan.ts'
import type { Secrets } from './kernel/secrets.ts'
import type { Definition } from './mcp/definitions/define.ts'
import type { KeptWarnings } from './operator.ts'

/** A new import creates new functions, so functions with the same source text count as equal. */
function differences(before: unknown, after: unknown, path: Path = []): Path[] {
  if (Object.is(before, after)) return []
  if (typeof before === 'function' && typeof after === 'function') return String(before) === String(after) ? [] : [path]
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, index) => differences(item, after[index], [...path, index]))
  }
  if (isPlain(before) && isPlain(after)) {
    return keysOf(before, after).flatMap(key =>
      differences(Reflect.get(before, key), Reflect.get(after, key), [...path, key]),
    )
  }
  return isDeepStrictEqual(before, after) ? [] : [path]
}

const keysOf = (one: object, other: object) => [...new Set([...Object.keys(one), ...Object.keys(other)])]

const SEPARATE = new Set(['toolsets', 'routes', 'plugins', 'store'])
export const RELOADABLE = new Set(['server', 'configureSession', 'runSession'])
const RELOADABLE_OF_TLS = new Set(['cert', 'key', 'passphrase', 'minVersion'])
export const RELOADABLE_OF_ROUTES = new Set(['toolsets', 'default'])

interface Comparison {
  readonly restart: string[]
  readonly taken: string[]
}

/** These keys are reported once, as `http.tls`. */
export const isTls = ([first, second, key]: Path) =>
  first === 'http' && second === 'tls' && RELOADABLE_OF_TLS.has(String(key))

function compareValues(before: FilledConfig, after: FilledConfig, { restart, taken }: Comparison) {
  for (const key of keysOf(before, after)) {
    if (SEPARATE.has(key)) continue
    const paths = differences(Reflect.get(before, key), Reflect.get(after, key), [key])
    if (RELOADABLE.has(key)) taken.push(...(paths.length > 0 ? [key] : []))
    else restart.push(...paths.filter(path => !isTls(path)).map(path => formatPath(path)))
  }
}

function compareRoutes({ routes: before }: FilledConfig, { routes: after }: FilledConfig, comparison: Comparison) {
  for (const path of keysOf(before, after)) {
    const [one, other] = [before[path], after[path]]
    if (!one || !other) {
      comparison.restart.push(formatPath(['routes', path]))
      continue
    }
    for (const key of keysOf(one, other)) {
      // `comparePlugins` compares plugin options.
      const isSame = differences(Reflect.get(one, key), Reflect.get(other, key)).length === 0
      if (isSame || !Object.hasOwn(route.properties, key)) continue
      comparison[RELOADABLE_OF_ROUTES.has(key) ? 'taken' : 'restart'].push(formatPath(['routes', path, key]))
    }
  }
}

const keyOf = (instance: PluginInstance) => formatPath(instance.at)
const byKey = (instances: readonly PluginInstance[]) => new Map(instances.map(one => [keyOf(one), one] as const))

type OptionChanges = Array<{ readonly key: string; readonly change: () => unknown }>

/** Calls every `onReload`, even with unchanged options, because the served items can differ. */
function comparePlugins(state: ReloadState, next: HostParts, { restart, taken }: Comparison): OptionChanges {
  const changes: OptionChanges = []
  const [before, after] = [byKey(state.parts.instances), byKey(next.instances)]
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(key), after.get(key)]
    if (!one || !other) {
      restart.push(key)
      continue
    }
    if (one.plugin !== other.plugin) {
      restart.push(`${key} (its module)`)
      continue
    }
    const options = state.options.get(key) ?? one.options
    const paths = differences(options, other.options, one.at).map(path => formatPath(path))
    const prepares = state.parts.onReload.filter(({ instance }) => instance === one)
    const prepared = prepares.map(({ value }) => value(other.options as never))
    const ready = prepared.filter(change => change !== undefined)
    const isTaken = prepares.length > 0 && ready.length === prepares.length
    if (isTaken) changes.push(...ready.map(change => ({ key, change })))
    if (paths.length > 0) (isTaken ? taken : restart).push(...(isTaken ? [key] : paths))
  }
  return changes
}

/** A definition from a file changes with its module or imports. Definitions in the config always count as changed. */
function hasChanged(before: Definition[], after: Definition[], digestOf: (one: Definition) => string, inline: boolean) {
  if (before.length !== after.length) return true
  return after.some((one, index) => {
    const other = before[index]
    return one !== other && (!inline || !other || digestOf(one) !== digestOf(other))
  })
}

/** Detects changed secrets of MCP_HOST_SECRETS or a file. */
function compareSecrets({ config, parts }: ReloadState, next: HostParts): string[] {
  if (differences(config.secrets, next.config.secrets).length > 0) return []
  const [one, other] = [parts.secrets, next.secrets]
  if (one.generated && other.generated) return []
  const textOf = ({ keys }: Secrets) => keys('session-id').map(key => key.toString('hex'))
  if (one.generated === other.generated && String(textOf(one)) === String(textOf(other))) return []
  return [one.isOfFile && other.isOfFile ? 'secrets.file' : 'MCP_HOST_SECRETS']
}

function compareToolsets(state: ReloadState, next: HostParts): string[] {
  const digestOf = (definition: Definition) => state.parts.catalog.compile(definition, 'toolsets').digest
  return [...new Set([...state.toolsets.keys(), ...next.toolsets.keys()])].flatMap(name => {
    const [before, after] = [state.toolsets.get(name), next.toolsets.get(name)]
    const source = sourceOf(next.config.toolsets[name])
    const inline = source !== undefined && [source].flat().some(entry => typeof entry !== 'string')
    const isSame = before && after && !hasChanged([...before], [...after], digestOf, inline)
    return isSame ? [] : [formatPath(['toolsets', name])]
  })
}

interface ReloadState {
  readonly parts: HostParts
  config: FilledConfig
  toolsets: ReadonlyMap<string, readonly Definition[]>
  readonly options: Map<string, object>
}

/** Synchronous, so that each request sees either the old or the new version. */
function applyReload(state: ReloadState, next: HostParts): ReloadReport {
  const { parts } = state
  const comparison: Comparison = { restart: [], taken: [] }
  compareValues(state.config, next.config, comparison)
  const routesTaken: Comparison = { restart: comparison.restart, taken: [] }
  compareRoutes(state.config, next.config, routesTaken)
  const pluginsTaken: Comparison = { restart: comparison.restart, taken: [] }
  const changes = comparePlugins(state, next, pluginsTaken)
  const restart = [...comparison.restart, ...compareSecrets(state, next)]
  if (restart.length > 0) return { restart, taken: [], told: 0 }
  const routesByPath = new Map(parts.routes.map(route => [route.path, route]))
  const combinations = next
    .combinations()
    .map(one => ({ ...one, route: routesByPath.get(one.route.path) ?? one.route }))
  const replace = parts.catalog.replace(next.toolsets, combinations)
  const toolsets = compareToolsets(state, next)
  const notifyChanges = parts.review()
  // From here on, nothing throws.
  replace()
  const newer = new Map(next.routes.map(route => [route.path, route]))
  for (const route of parts.routes) route.serveAs(newer.get(route.path) ?? route)
  parts.offered.now = next.config
  parts.offered.reloads++
  Object.assign(parts.server, next.server)
  const isRenewed = next.tls && parts.tls?.update(next.tls)
  const { failed, changed, renewed } = parts.catalog.reloading(() => applyOptions(changes, parts))
  state.config = next.config
  state.toolsets = next.toolsets
  for (const one of next.instances) if (!failed.has(keyOf(one))) state.options.set(keyOf(one), one.options)
  const told = notifyChanges()
  const taken = [
    ...comparison.taken,
    ...(isRenewed ? ['http.tls'] : []),
    ...routesTaken.taken,
    ...toolsets,
    ...[...new Set([...pluginsTaken.taken, ...renewed])].filter(key => !failed.has(key)),
    ...changed,
  ]
  return { restart, taken, told }
}

/** `failed` plugins keep their options and are retried at the next reload. `renewed` plugins serve other items. */
function applyOptions(changes: OptionChanges, { catalog, log }: Pick<HostParts, 'catalog' | 'log'>) {
  const failed = new Set<string>()
  const renewed = new Set<string>()
  const changed: string[] = []
  for (const { key, change } of changes) {
    const generation = catalog.generation()
    try {
      const texts = change()
      if (Array.isArray(texts)) changed.push(...texts.map(text => `${key}: ${text}`))
      if (catalog.generation() !== generation) renewed.add(key)
    } catch (err) {
      failed.add(key)
      log.error(
        { code: 'MH1512', err, plugin: key },
        'a plugin failed to apply its new options and keeps the previous ones: reload again or restart',
      )
    }
  }
  return { failed, renewed, changed }
}

const ignore = () => undefined

/**
 * Creates a log for building a host, until `end`. It drops `known` warnings and adds new ones, ignoring line numbers.
 * `isReload`: only warnings are logged.
 */
export function warnOnce(log: Logger, known: Set<string>, isReload: boolean, kept: Pick<KeptWarnings, 'add'>) {
  let isOpen = true
  const wrap = (to: Logger, bindings: object): Logger => ({
    debug: isReload ? ignore : (fields, message) => to.debug(fields, message),
    info: isReload ? ignore : (fields, message) => to.info(fields, message),
    error: isReload ? ignore : (fields, message) => to.error(fields, message),
    warn(fields, message) {
      kept.add({ ...bindings, ...fields }, message ?? '')
      const key = inspect([message, { ...bindings, ...fields, line: undefined }], { depth: 6, breakLength: Infinity })
      if (isOpen && known.has(key)) return
      if (isOpen) known.add(key)
      to.warn(fields, message)
    },
    child: more => wrap(to.child(more), { ...bindings, ...more }),
  })
  const end = () => {
    isOpen = false
  }
  return { log: wrap(log, {}), end }
}

export function reloadable({ host, parts }: BuiltHost, build: (loaded: LoadedConfig) => Promise<BuiltHost>): Host {
  const state: ReloadState = { parts, config: parts.config, toolsets: parts.toolsets, options: new Map() }
  let last: Promise<unknown> = Promise.resolve()

  async function reload(loaded: LoadedConfig): Promise<ReloadReport> {
    const next = await build(loaded)
    try {
      return applyReload(state, next.parts)
    } finally {
      await next.host.close({ grace: 0 })
    }
  }

  return Object.assign(host, {
    reload(loaded: LoadedConfig) {
      const report = last.then(() => reload(loaded))
      last = report.catch(() => undefined)
      return report
    },
  })
}
