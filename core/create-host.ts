// Creates hosts from configs, for programs that embed a host and for the CLI.

import { basename, dirname, join, resolve } from 'node:path'
import { builtInPlugins, defaultPlugins, memoryStores } from '../plugins/index.ts'
import { checkConfig, checkValue, withoutFaults } from './config/check-config.ts'
import { faultsOf } from './config/check-definition.ts'
import { buildConfigSchema, checkSectionNames, collectSections, withoutRequired } from './config/config-schema.ts'
import type { Config, FilledConfig } from './config/define-config.ts'
import type { Examination, PluginFinding } from './config/examination.ts'
import type { Finding } from './config/explain-problems.ts'
import { findPlugins, isMisspelt, type PluginTable, pluginValues } from './config/find-plugins.ts'
import { type LoadedConfig, loadConfig } from './config/load-config.ts'
import { loadToolsets } from './config/load-toolsets.ts'
import { filesRead, refreshModules } from './config/module-graph.ts'
import { createPlaces } from './config/places.ts'
import { withLongForms } from './config/plan-options.ts'
import { ConfigError, createProblems, type Problem, type Problems } from './config/problems.ts'
import { fillDefaults, trimSecrets } from './config/walk-schema.ts'
import {
  type BuiltHost,
  buildHost,
  type Host,
  type HostInput,
  type HostParts,
  type InEveryProcess,
  type ReloadReport,
} from './host.ts'
import type { Clock } from './http/clock.ts'
import { errorText, StartError } from './http/errors.ts'
import { isConfiguredPlugin, type Plugin } from './kernel/define-plugin.ts'
import type { PluginConfig } from './kernel/kernel-host.ts'
import { createLogger, type Logger } from './kernel/log.ts'
import type { PluginInstance } from './kernel/plugin-plan.ts'
import { notePlace } from './mcp/definition-place.ts'
import { isObject } from './mcp/is-object.ts'
import type { Observer } from './mcp/observe.ts'
import type { Plugin as HostPlugin } from './plugin-host.ts'
import { reloadable, warnOnce } from './reload.ts'
import type { Neighbours } from './sessions/neighbours.ts'

/** Options of `createHost`. */
export interface CreateHostOptions {
  /** Config paths are relative to it. Default: the working directory. */
  directory?: string
  /** Default: JSON lines on stderr. */
  log?: Logger
  /** See `PluginHost.purpose`. Default `serve`; an `inspect` host cannot listen. */
  purpose?: PluginConfig['purpose']
  /** Number of processes that serve this config. Default 1. With more, per-process state is a StartError. */
  processes?: number
  inEveryProcess?: InEveryProcess
  /** Connects the processes. Default: none. */
  neighbours?: Neighbours
  /** Checks each version of the host before it serves. A rejection stops startup or the reload. */
  accept?: (host: Pick<Host, 'served'>) => Promise<void>
  observe?: Observer
  /** Time and timers, for tests. Default: the system clock. */
  clock?: Clock
}

export const pluginsOf = (table: PluginTable): Record<string, Plugin<object>> =>
  Object.fromEntries(Object.entries(table).map(([name, { plugin }]) => [name, plugin as Plugin<object>]))

/** Built-in plugins and those that the config contains. Throws a StartError for an invalid plugin. */
export async function pluginsFor(config: Config, directory: string): Promise<Map<string, Plugin<object>>> {
  const problems = createProblems(() => ({}), { warn: () => undefined })
  const found = await findPlugins(config, builtInPlugins, directory, problems)
  problems.assertNone()
  return found
}

function suggestPlugin(...capabilities: string[]): string {
  const fitting = [...builtIns].filter(([, { provides = [] }]) =>
    capabilities.every(wanted => provides.includes(wanted)),
  )
  return fitting.map(([name]) => name).join(' or ') || `a plugin that provides ${capabilities.join(', ')}`
}

const builtIns = new Map(Object.entries(pluginsOf(builtInPlugins)))

const SHORT_FORMS = { search: suggestPlugin('search') }

function lazyGuardedFetch(): typeof fetch {
  let made: Promise<typeof fetch> | undefined
  return async (input, init) => {
    made ??= import('../client/node/guarded-fetch.ts').then(({ createGuardedFetch }) => createGuardedFetch())
    return (await made)(input, init)
  }
}

/** The sections of built-in plugins, shared by all configs. */
const builtInSections = collectSections(builtIns)
const hostSchema = buildConfigSchema({}, builtInSections)
const knownKeys = Object.keys(hostSchema['properties'] as object)
const ownKeys = knownKeys.filter(key => !builtInSections.has(key))

function checkOptions(
  loaded: LoadedConfig,
  plugins: ReadonlyMap<string, { options: object }>,
  note: (finding: Finding) => void,
): Problem[] {
  return pluginValues(loaded.config).flatMap(({ at, name, value, isOverride }) => {
    const plugin = plugins.get(name)
    if (!plugin || !isObject(value) || isConfiguredPlugin(value)) return []
    const schema = isOverride ? withoutRequired(plugin.options) : plugin.options
    return checkValue(loaded, at, value, schema, note)
  })
}

function openKeys({ config }: LoadedConfig): string[] {
  const isOther = ({ name, value }: { name: string; value: unknown }) => isObject(value) && !builtIns.has(name)
  if (!isObject(config) || !pluginValues(config).some(isOther)) return []
  return Object.keys(config).filter(key => !knownKeys.includes(key))
}

const withoutKeys = (config: unknown, keys: readonly string[]) =>
  Object.fromEntries(Object.entries(config as object).filter(([key]) => !keys.includes(key)))

interface BuildOptions
  extends Pick<
    CreateHostOptions,
    'purpose' | 'processes' | 'inEveryProcess' | 'neighbours' | 'observe' | 'accept' | 'clock'
  > {
  /** Adapts each version of the config for this process. */
  readonly adapt?: (loaded: LoadedConfig) => LoadedConfig
}

interface Building extends BuildOptions {
  readonly isReload?: boolean
}

/** Throws a ConfigError with all problems. */
async function build(
  read: LoadedConfig,
  log: Logger,
  { purpose, processes, inEveryProcess, neighbours, observe, clock, adapt, isReload = false }: Building,
): Promise<BuiltHost> {
  const loaded = adapt?.(read) ?? read
  const directory = dirname(loaded.file)
  const places = createPlaces(loaded)
  const problems = createProblems(places.placeOf, log)
  warnOfOthers(loaded, problems)
  const open = openKeys(loaded)
  const settled = open.length === 0 ? loaded : { ...loaded, config: withoutKeys(loaded.config, open) }
  const faults: Finding[] = []
  const note = (finding: Finding) => void faults.push(finding)
  problems.add([...checkConfig(settled, hostSchema, note), ...checkOptions(loaded, builtIns, note)])
  const shapeless = problems.count()
  const plugins = await findPlugins(loaded.config, builtInPlugins, directory, problems)
  const named = problems.count()
  const isWhole = named === shapeless
  const imported = new Map([...plugins].filter(([name]) => !builtIns.has(name)))
  const schema = await problems.attempt(() => {
    problems.add(checkOptions(loaded, imported, note))
    const sections = collectSections(plugins)
    checkSectionNames(sections, ownKeys)
    return sections.size === builtInSections.size ? hostSchema : buildConfigSchema({}, sections)
  })
  // A missing plugin could declare the unknown keys, unless its name is a typo of a built-in plugin.
  if (schema && open.length > 0 && (isWhole || isMisspelt(loaded.config, plugins, builtIns))) {
    problems.add(checkConfig(loaded, schema, note))
  }
  const isShaped = shapeless === 0 && problems.count() === named
  const sources = isObject(loaded.config) ? loaded.config['toolsets'] : undefined
  const toolsets = await loadToolsets(sources, { directory, problems, places })
  for (const definition of [...toolsets.values()].flat()) {
    notePlace(definition, () => places.placeOf({ of: definition, at: ['output'] }))
  }
  const filled = schema ?? hostSchema
  const part = isShaped && schema ? undefined : withoutFaults(loaded.config, faults)
  if (!isShaped && !part) problems.assertNone()
  const written = fillDefaults(trimSecrets(part?.config ?? loaded.config, filled), filled) as FilledConfig
  const configured = withLongForms(written, SHORT_FORMS, problems.report)
  const byDefault = Object.fromEntries(defaultPlugins.map(name => [name, {}]))
  const config = { ...configured, plugins: { ...byDefault, ...configured.plugins } }
  const reading = { directory, purpose: purpose ?? ('serve' as const), isReload, log, problems }
  const { secrets: ownSecrets = [] } = config
  const secrets =
    'file' in ownSecrets
      ? await (await import('./given-secrets.ts')).secretsOfFile(ownSecrets.file, reading)
      : { list: ownSecrets, isOfFile: false }
  const isBuiltIn = (plugin: Plugin<object>) => [...builtIns.values()].includes(plugin)
  const found = { config, secrets, plugins, isBuiltIn, toolsets, isWhole, problems }
  const settings = { purpose, processes, inEveryProcess, neighbours, observe, clock }
  const given = {
    ...found,
    directory,
    log,
    suggest: suggestPlugin,
    guardedFetch: lazyGuardedFetch(),
    memoryStores,
    ...settings,
  }
  return part ? findOtherProblems({ ...given, isUnsound: part.isUnsound }) : buildHost(given)
}

/** Builds the host of a loaded config. Throws a ConfigError with all problems. */
export async function hostOf(
  loaded: LoadedConfig,
  log: Logger = createLogger(),
  options: BuildOptions = {},
): Promise<Host> {
  const warned = new Set<string>()
  const first = warnOnce(log, warned, false)
  const built = await buildAccepted(loaded, first.log, options)
  first.end()
  return reloadable(built, next => buildAccepted(next, warnOnce(log, warned, true).log, { ...options, isReload: true }))
}

async function buildAccepted(loaded: LoadedConfig, log: Logger, options: Building): Promise<BuiltHost> {
  const built = await build(loaded, log, options)
  try {
    await options.accept?.(built.host)
  } catch (error) {
    await built.host.close({ grace: 0 })
    throw error
  }
  return built
}

/** Runs the `examine` functions of the config's plugins without starting a host. Throws a ConfigError with all problems. */
export async function examineConfig(loaded: LoadedConfig, log: Logger): Promise<PluginFinding[]> {
  const { host, parts } = await build(loaded, log, { purpose: 'inspect' })
  try {
    return await examinePlugins({ ...parts, directory: dirname(loaded.file), log })
  } finally {
    await host.close()
  }
}

/** Warns about a second config in the folder. */
function warnOfOthers({ file, others = [] }: LoadedConfig, { report }: Problems): void {
  if (others.length === 0) return
  const named = others.map(other => basename(other)).join(', ')
  const what = `${basename(file)} is used, and ${named} beside it is not; delete it, or name one with --config`
  report(new StartError('MH1008', what, { at: [] }), 'warning')
}

/** Builds the host of a config object. It starts serving with `listen()`. */
export function createHost(config: Config, options: CreateHostOptions = {}): Promise<Host> {
  const { directory = process.cwd(), log } = options
  return hostOf({ file: join(directory, 'config'), config, locate: () => undefined, isInHand: true }, log, options)
}

/** Finds and loads the config like the CLI, and builds its host. */
export async function loadHost(options: Parameters<typeof loadConfig>[0] & BuildOptions, log?: Logger): Promise<Host> {
  return hostOf(await loadConfig(options), log, options)
}

/**
 * Reloads the config and its changed modules: see `Host.reload`. `environment`: environment variables changed, too. Rejects with
 * a StartError if nothing was applied.
 */
export async function reloadHost(
  host: Pick<Host, 'reload'>,
  { environment = false, ...options }: Parameters<typeof loadConfig>[0] & { environment?: boolean },
): Promise<ReloadReport> {
  const [first] = filesRead
  const root = options.file === undefined ? first : resolve(options.cwd, options.file)
  await refreshModules(root ?? options.cwd, { environment })
  return host.reload(await loadConfig(options))
}

interface Parts extends Pick<HostParts, 'config' | 'instances'> {
  readonly directory: string
  readonly log: Logger
}

/** The URL of the host; undefined if it is known only after listening. */
function addressOf({ http: { publicUrl, host, port, tls } }: Parts['config']): string | undefined {
  if (publicUrl !== undefined) return publicUrl.replace(/\/$/, '')
  return port === 0 ? undefined : `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function examineOne(instance: PluginInstance, parts: Parts): Promise<PluginFinding[]> {
  const { name, options, general, routes } = instance
  const plugin: HostPlugin<object> = instance.plugin
  if (!plugin.examine) return []
  const whose = general ? name : `${name} of ${routes[0]?.path}`
  const address = addressOf(parts.config)
  const about: Examination = {
    at: instance.at,
    directory: parts.directory,
    log: parts.log.child({ plugin: name }),
    url: path => (address === undefined ? undefined : `${address}${path}`),
  }
  try {
    const findings = await plugin.examine(options, about)
    return findings.map(finding => ({ ...finding, check: `${whose}: ${finding.check}` }))
  } catch (error) {
    const fix = 'this is a mistake in the plugin: it should have told what it found'
    return [{ check: whose, level: 'wrong', text: `it could not be examined: ${errorText(error)}`, fix }]
  }
}

export async function examinePlugins(parts: Parts): Promise<PluginFinding[]> {
  const found = await Promise.all(parts.instances.map(instance => examineOne(instance, parts)))
  return found.flat()
}

/** Builds a host from the valid part of an invalid config, to report further problems. Throws a ConfigError with all of them. */
export async function findOtherProblems({ toolsets, problems, ...input }: HostInput): Promise<never> {
  const sound = [...toolsets].map(([name, list]) => [name, list.filter(one => faultsOf(one).length === 0)] as const)
  try {
    const { host } = await buildHost({ ...input, toolsets: new Map(sound), problems, purpose: 'inspect' })
    await host.close({ grace: 0 })
  } catch (error) {
    // Other errors are probably caused by the missing parts.
    if (error instanceof ConfigError) throw error
  }
  return problems.assertNone() as never
}
