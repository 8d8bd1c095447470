// A newer version of a host's config, taken while it runs: all of it at once, or nothing. It is built beside the running
// host as `check` builds it, so that whatever would stop a start is found first; what only a start can take is named.

import { inspect, isDeepStrictEqual } from 'node:util'
import { type FilledConfig, isPlain, sourceOf } from './config/define-config.ts'
import type { LoadedConfig } from './config/load-config.ts'
import type { BuiltHost, Host, HostParts, ReloadReport } from './host.ts'
import { formatPath, type Path } from './http/errors.ts'
import type { Logger } from './kernel/log.ts'
import type { PluginInstance } from './kernel/plugin-plan.ts'
import type { Secrets } from './kernel/secrets.ts'
import type { Definition } from './mcp/define.ts'

/** Importing a module again creates new functions, so functions with the same source text count as equal. */
function differences(before: unknown, after: unknown, path: Path = []): Path[] {
  if (Object.is(before, after)) return []
  if (typeof before === 'function' && typeof after === 'function') {
    return String(before) === String(after) ? [] : [path]
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, index) => differences(item, after[index], [...path, index]))
  }
  if (isPlain(before) && isPlain(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].flatMap(key => differences(Reflect.get(before, key), Reflect.get(after, key), [...path, key]))
  }
  return isDeepStrictEqual(before, after) ? [] : [path]
}

/** What is taken in another way than as a value: `toolsets` by the catalog, `plugins` by the plugins. */
const APART = new Set(['toolsets', 'routes', 'plugins'])
const TAKEN = new Set(['server', 'configureSession', 'runSession'])
const APPLIED_BY_TLS = new Set(['cert', 'key', 'passphrase', 'minVersion'])
/** Of a route: what plugins take, or do not. */
const OF_PLUGINS = new Set(['plugins', 'search'])
const TAKEN_OF_ROUTES = new Set(['toolsets', 'default'])

interface Comparison {
  readonly restart: string[]
  readonly taken: string[]
}

/** Reported once, as `http.tls`. */
const isAppliedByTls = ([first, second, key]: Path) =>
  first === 'http' && second === 'tls' && APPLIED_BY_TLS.has(String(key))

function compareValues(before: FilledConfig, after: FilledConfig): Comparison {
  const restart: string[] = []
  const taken: string[] = []
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (APART.has(key)) continue
    const paths = differences(Reflect.get(before, key), Reflect.get(after, key), [key])
    if (TAKEN.has(key)) taken.push(...(paths.length > 0 ? [key] : []))
    else restart.push(...paths.filter(path => !isAppliedByTls(path)).map(path => formatPath(path)))
  }
  return { restart, taken }
}

function compareRoutes({ routes: before }: FilledConfig, { routes: after }: FilledConfig): Comparison {
  const restart: string[] = []
  const taken: string[] = []
  for (const path of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [one, other] = [before[path], after[path]]
    if (!one || !other) {
      restart.push(formatPath(['routes', path]))
      continue
    }
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      const paths = OF_PLUGINS.has(key) ? [] : differences(Reflect.get(one, key), Reflect.get(other, key))
      if (paths.length === 0) continue
      const list = TAKEN_OF_ROUTES.has(key) ? taken : restart
      list.push(formatPath(['routes', path, key]))
    }
  }
  return { restart, taken }
}

const keyOf = (instance: PluginInstance) => formatPath(instance.at)
const byKey = (instances: readonly PluginInstance[]) => new Map(instances.map(one => [keyOf(one), one] as const))

interface PluginComparison extends Comparison {
  /** What takes the options of plugins that can. */
  readonly switches: Array<{ readonly key: string; readonly change: () => unknown }>
}

/** Asks every plugin that takes new options while it runs: what routes serve is theirs to look at, too. */
function comparePlugins(own: Reloaded, next: HostParts): PluginComparison {
  const restart: string[] = []
  const taken: string[] = []
  const switches: PluginComparison['switches'] = []
  const [before, after] = [byKey(own.parts.instances), byKey(next.instances)]
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
    const paths = differences(own.optionsOf(one), other.options, one.at).map(path => formatPath(path))
    const prepares = own.parts.reconfigure.filter(({ instance }) => instance === one)
    const prepared = prepares.map(({ value }) => value(other.options as never))
    const ready = prepared.filter(change => change !== undefined)
    const isTaken = prepares.length > 0 && ready.length === prepares.length
    if (isTaken) switches.push(...ready.map(change => ({ key, change })))
    if (paths.length > 0) (isTaken ? taken : restart).push(...(isTaken ? [key] : paths))
  }
  return { restart, taken, switches }
}

/** A definition in a file is a new one where its module, or what that imports, has changed; one in the config always is. */
function hasChanged(before: Definition[], after: Definition[], digestOf: (one: Definition) => string, inline: boolean) {
  if (before.length !== after.length) return true
  return after.some((one, index) => {
    const other = before[index]
    if (one === other) return false
    return !inline || !other || digestOf(one) !== digestOf(other)
  })
}

/** Secrets whose keys a start would make of another environment, or of what is in their file by now. */
function compareSecrets({ config, parts }: Reloaded, next: HostParts): string[] {
  if (differences(config.secrets, next.config.secrets).length > 0) return []
  const [one, other] = [parts.secrets, next.secrets]
  if (one.generated && other.generated) return []
  const textOf = ({ keys }: Secrets) =>
    keys('session-id')
      .map(key => key.toString('hex'))
      .join()
  if (one.generated === other.generated && textOf(one) === textOf(other)) return []
  return [one.isOfFile && other.isOfFile ? 'secrets.file' : 'MCP_HOST_SECRETS']
}

function compareToolsets(own: Reloaded, next: HostParts): string[] {
  const { catalog } = own.parts
  const digestOf = (definition: Definition) => catalog.compile(definition, 'toolsets').digest
  return [...new Set([...own.toolsets.keys(), ...next.toolsets.keys()])].flatMap(name => {
    const [before, after] = [own.toolsets.get(name), next.toolsets.get(name)]
    const source = sourceOf(next.config.toolsets[name])
    const inline = source !== undefined && [source].flat().some(entry => typeof entry !== 'string')
    const isSame = before && after && !hasChanged([...before], [...after], digestOf, inline)
    return isSame ? [] : [formatPath(['toolsets', name])]
  })
}

/** The running host, and which version of its config it serves by now. */
interface Reloaded {
  readonly parts: HostParts
  config: FilledConfig
  toolsets: ReadonlyMap<string, readonly Definition[]>
  optionsOf(instance: PluginInstance): object
  options: ReadonlyMap<string, object>
}

/** From here to the end nothing waits: whoever calls is served all of the old config, or all of the new. */
function take(own: Reloaded, next: HostParts): ReloadReport {
  const { parts } = own
  const values = compareValues(own.config, next.config)
  const routes = compareRoutes(own.config, next.config)
  const plugins = comparePlugins(own, next)
  const restart = [...values.restart, ...routes.restart, ...plugins.restart, ...compareSecrets(own, next)]
  if (restart.length > 0) return { restart, taken: [], told: 0 }
  // From `replace()` on nothing throws: the new version is served then, whatever is told of it.
  const routesByPath = new Map(parts.routes.map(route => [route.path, route]))
  const combinations = next
    .combinations()
    .map(one => ({ ...one, route: routesByPath.get(one.route.path) ?? one.route }))
  const replace = parts.catalog.replace(next.toolsets, combinations)
  const toolsets = compareToolsets(own, next)
  const tellChanges = parts.review()
  replace()
  const newer = new Map(next.routes.map(route => [route.path, route]))
  for (const route of parts.routes) route.serveAs(newer.get(route.path) ?? route)
  parts.offered.now = next.config
  parts.offered.reloads++
  Object.assign(parts.server, next.server)
  const isRenewed = next.tls && parts.tls?.take(next.tls)
  const { failed, changed, renewed } = switchAll(plugins.switches, parts)
  own.config = next.config
  own.toolsets = next.toolsets
  const switched = next.instances.filter(one => !failed.has(keyOf(one)))
  own.options = new Map([...own.options, ...switched.map(one => [keyOf(one), one.options] as const)])
  const told = tellChanges()
  const pluginsTaken = [...new Set([...plugins.taken, ...renewed])].filter(key => !failed.has(key))
  return {
    restart,
    taken: [
      ...values.taken,
      ...(isRenewed ? ['http.tls'] : []),
      ...routes.taken,
      ...toolsets,
      ...pluginsTaken,
      ...changed,
    ],
    told,
  }
}

interface Switched {
  /** The keys of plugins that failed to: at the next reload their options differ still, and they are asked again. */
  readonly failed: ReadonlySet<string>
  /** Those of plugins that serve something else now, whatever their options say. */
  readonly renewed: ReadonlySet<string>
  /** What else plugins say has changed. */
  readonly changed: readonly string[]
}

function switchAll(
  switches: PluginComparison['switches'],
  { catalog, log }: Pick<HostParts, 'catalog' | 'log'>,
): Switched {
  const failed = new Set<string>()
  const renewed = new Set<string>()
  const changed: string[] = []
  for (const { key, change } of switches) {
    const generation = catalog.generation()
    try {
      const texts = change()
      if (Array.isArray(texts)) changed.push(...texts.map(text => `${key}: ${text}`))
      if (catalog.generation() !== generation) renewed.add(key)
    } catch (err) {
      failed.add(key)
      log.error(
        { err, plugin: key },
        'a plugin failed to take its new options, and keeps its old ones: reload again or restart',
      )
    }
  }
  return { failed, renewed, changed }
}

/** Where a new version's warnings go, and those of the start. */
interface Told {
  readonly log: Logger
  readonly warnings: Warnings
}

/** The host with its `reload`. `build` builds a host of another version of its config, which is closed again. */
export function reloadable(
  { host, parts }: BuiltHost,
  build: (loaded: LoadedConfig, log: Logger) => Promise<BuiltHost>,
  { log, warnings }: Told,
): Host {
  const own: Reloaded = {
    parts,
    config: parts.config,
    toolsets: parts.toolsets,
    options: new Map(),
    optionsOf: instance => own.options.get(keyOf(instance)) ?? instance.options,
  }
  let last: Promise<unknown> = Promise.resolve()
  let told = warnings

  async function reload(loaded: LoadedConfig): Promise<ReloadReport> {
    const kept = keepWarnings()
    const next = await build(loaded, kept.log)
    const found = kept.end()
    try {
      const report = take(own, next.parts)
      if (report.restart.length === 0) {
        tellNew(told, found, log)
        told = found
      }
      return report
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

interface Warning {
  readonly fields: object
  readonly message: string | undefined
}

/** By what they say; one whose line alone has moved is the same. */
export type Warnings = ReadonlyMap<string, Warning>

export interface WarningsKept {
  /** For what builds the host: what it is told goes on to `log`, if there is one. */
  readonly log: Logger
  /** From now on nothing is kept any more. */
  end(): Warnings
}

function keyOfWarning({ fields, message }: Warning): string {
  const { line: _, ...said } = fields as { line?: unknown }
  return inspect([message, said], { depth: 6, breakLength: Infinity })
}

export function keepWarnings(log?: Logger): WarningsKept {
  const kept = new Map<string, Warning>()
  let isOpen = true

  const keeping = (bindings: object, to: Logger | undefined): Logger => ({
    debug: (fields, message) => to?.debug(fields, message),
    info: (fields, message) => to?.info(fields, message),
    warn(fields, message) {
      if (isOpen) {
        const warning = { fields: { ...bindings, ...fields }, message }
        kept.set(keyOfWarning(warning), warning)
      }
      to?.warn(fields, message)
    },
    error: (fields, message) => to?.error(fields, message),
    child: more => keeping({ ...bindings, ...more }, to?.child(more)),
  })

  return {
    log: keeping({}, log),
    end() {
      isOpen = false
      return kept
    },
  }
}

/** Logs what `after` has and `before` has not. */
export function tellNew(before: Warnings, after: Warnings, log: Pick<Logger, 'warn'>): void {
  for (const [key, { fields, message }] of after) if (!before.has(key)) log.warn(fields, message)
}
