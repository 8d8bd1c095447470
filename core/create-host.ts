// Creates hosts from configs, for programs that embed a host and for the CLI.

import { basename, dirname, join, resolve } from 'node:path'
import { builtInPlugins, defaultPlugins } from '../plugins/index.ts'
import { checkConfig, checkValue, withoutProblems } from './config/check-config.ts'
import { createDefinitionCheck, type FindProblems, formatFinding } from './config/check-definition.ts'
import { buildConfigSchema, route, withoutRequired } from './config/config-schema.ts'
import { collectKeys } from './config/declared-keys.ts'
import type { Config, FilledConfig } from './config/define-config.ts'
import type { PluginFinding } from './config/examination.ts'
import type { Finding } from './config/explain-problems.ts'
import { areAllMisspelled, findPlugins, type PluginTable, pluginValues } from './config/find-plugins.ts'
import { type LoadedConfig, loadConfig } from './config/load-config.ts'
import { loadToolsets } from './config/load-toolsets.ts'
import { filesRead, refreshModules } from './config/module-graph.ts'
import { withLongForms } from './config/plan-options.ts'
import { ConfigError, createProblems, type Problem, type Problems } from './config/problems.ts'
import { hasEnvironmentSecrets, secretsOfFile } from './config/secrets-file.ts'
import { createSourceLocations } from './config/source-locations.ts'
import { fillDefaults, trimSecrets } from './config/walk-schema.ts'
import {
  type BuiltHost,
  buildHost,
  type CreateHostOptions,
  type Host,
  type HostInput,
  type HostParts,
  type ReloadReport,
  type RunOptions,
} from './host.ts'
import { errorText, type Path, StartError } from './http/errors.ts'
import type { InternalExamination, Outbound } from './internal-host.ts'
import { isConfiguredPlugin, type Plugin } from './kernel/define-plugin.ts'
import type { LockSettings } from './kernel/kernel-host.ts'
import { createLogger, type Logger, limitLog } from './kernel/log.ts'
import { type PluginInstance, providesTo } from './kernel/plugin-plan.ts'
import { contextNames } from './mcp/calls/context-members.ts'
import type { Definition } from './mcp/definitions/define.ts'
import { DEFINITION_SCHEMAS } from './mcp/definitions/definition-schema.ts'
import { isObject } from './mcp/wire/message.ts'
import { createKeptWarnings, type KeptWarnings } from './operator.ts'
import type { Plugin as HostPlugin } from './plugin-host.ts'
import { reloadable, warnOnce } from './reload.ts'

export const pluginsOf = (table: PluginTable): Record<string, Plugin<object>> =>
  Object.fromEntries(Object.entries(table).map(([name, { plugin }]) => [name, plugin as Plugin<object>]))

/** Returns the built-in plugins and the plugins that the config contains. Throws a StartError for an invalid plugin. */
export async function pluginsFor(config: Config, directory: string): Promise<Map<string, Plugin<object>>> {
  const problems = createProblems(() => ({}), { warn: () => undefined })
  const found = await findPlugins(config, builtInPlugins, directory, problems)
  problems.assertNone()
  return found
}

function suggestPlugin(...capabilities: string[]): string {
  const matching = [...builtIns].filter(([, plugin]) => capabilities.every(wanted => providesTo(plugin, wanted)))
  return matching.map(([name]) => name).join(' or ') || `a plugin that provides ${capabilities.join(', ')}`
}

const builtIns = new Map(Object.entries(pluginsOf(builtInPlugins)))

function createOutbound(): Outbound {
  let loading: Promise<typeof fetch> | undefined
  return {
    async guardedFetch(input, init) {
      loading ??= import('../client/node/fetch.ts').then(({ createGuardedFetch }) => createGuardedFetch())
      return (await loading)(input, init)
    },
    openConnections: async options => (await import('../client/node/fetch.ts')).openConnections(options),
    createLoginClient: async options => (await import('../client/login-client.ts')).createLoginClient(options),
    createTokenClient: async options => (await import('../client/token-client.ts')).createTokenClient(options),
  }
}

/** Keys that built-in plugins declare, shared by all configs without other plugins. */
const builtInKeys = collectKeys(builtIns)
export const builtInContext = builtInKeys.context
const hostSchema = buildConfigSchema({}, builtInKeys)
const builtInCheck = createDefinitionCheck(builtInKeys.toolKeys)
const reservedKeys = {
  sections: Object.keys(buildConfigSchema({})['properties'] as object),
  routeKeys: [...Object.keys(route.properties), 'store', 'plugins'],
  toolKeys: Object.keys(DEFINITION_SCHEMAS.tool.properties),
  context: contextNames(),
}

const isUnknownKey = ({ kind, path }: Finding) => kind === 'unknown option' && path.length === 1

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

interface BuildOptions extends RunOptions, Pick<CreateHostOptions, 'accept'> {
  /** Default: `mcp.lock.json` next to the config. */
  readonly lock?: LockSettings
  /** Adapts each version of the config for this process. */
  readonly adapt?: (loaded: LoadedConfig) => LoadedConfig
  readonly program?: HostInput['program']
}

interface BuildInput extends BuildOptions {
  readonly isReload?: boolean
  readonly warnings?: KeptWarnings
}

async function build(
  read: LoadedConfig,
  log: Logger,
  { adapt, isReload = false, accept: _, ...settings }: BuildInput,
): Promise<BuiltHost> {
  const loaded = adapt?.(read) ?? read
  const directory = dirname(loaded.file)
  const locations = createSourceLocations(loaded)
  const problems = createProblems(locations.locationOf, log)
  warnOfIgnoredConfigs(loaded, problems)
  const plugins = await findPlugins(loaded.config, builtInPlugins, directory, problems)
  const allPluginsFound = problems.count() === 0
  const isBuiltInOnly = plugins.size === builtIns.size
  const declared = isBuiltInOnly ? builtInKeys : await problems.attempt(() => collectKeys(plugins, reservedKeys))
  const keys = declared ?? builtInKeys
  const schema = isBuiltInOnly ? hostSchema : buildConfigSchema({}, keys)
  // A missing plugin could declare the unknown keys, unless its name is a typo of a built-in plugin.
  const isOpen = !allPluginsFound && !areAllMisspelled(loaded.config, plugins, builtIns)
  const check = isBuiltInOnly ? builtInCheck : createDefinitionCheck(keys.toolKeys)
  const findProblems: FindProblems = isOpen ? definition => check(definition).filter(one => !isUnknownKey(one)) : check
  const findings: Finding[] = []
  const note = (finding: Finding) => void findings.push(finding)
  const countBefore = problems.count()
  const isRequired = ([key]: Path) => key === 'secrets' && settings.purpose !== 'test' && !hasEnvironmentSecrets()
  const onUnset = (variable: string, at: Path) =>
    problems.reportUnset(variable, at, isRequired(at) ? 'error' : 'warning')
  problems.add(checkConfig(loaded, schema, { findProblems, note, onUnset, isOpen }))
  const hasChecked = await problems.attempt(() => {
    problems.add(checkOptions(loaded, plugins, note))
    return true
  })
  const isValid = declared !== undefined && hasChecked === true && problems.count() === countBefore
  const sources = isObject(loaded.config) ? loaded.config['toolsets'] : undefined
  const toolsets = await loadToolsets(sources, { directory, problems, locations, findProblems })
  const validPart = isValid ? undefined : withoutProblems(loaded.config, findings)
  if (!isValid && !validPart) problems.assertNone()
  const filled = fillDefaults(trimSecrets(validPart?.config ?? loaded.config, schema), schema) as FilledConfig
  const configured = withLongForms(filled, keys, problems.report)
  const byDefault = Object.fromEntries(defaultPlugins.map(name => [name, {}]))
  const config = { ...configured, plugins: { ...byDefault, ...configured.plugins } }
  const secretsContext = { directory, purpose: settings.purpose ?? ('serve' as const), isReload, log, problems }
  const { secrets: ownSecrets = [] } = config
  const secrets =
    'file' in ownSecrets ? await secretsOfFile(ownSecrets.file, secretsContext) : { list: ownSecrets, isOfFile: false }
  const isBuiltIn = (plugin: Plugin<object>) => [...builtIns.values()].includes(plugin)
  const problemsOf = (definition: Definition) => findProblems(definition).map(formatFinding)
  const readerOf = (toolKey: string) => keys.toolKeys.get(toolKey)?.plugin ?? 'the plugin that reads it'
  const input = {
    config,
    schema,
    secrets,
    plugins,
    isBuiltIn,
    toolsets,
    allPluginsFound,
    problems,
    problemsOf,
    readerOf,
    context: keys.context,
    directory,
    log,
    suggest: suggestPlugin,
    outbound: createOutbound(),
    ...settings,
  }
  return validPart ? findOtherProblems({ ...input, hasInvalidOptions: validPart.hasInvalidOptions }) : buildHost(input)
}

/** Builds the host of a loaded config. Throws a ConfigError with all problems. */
export async function hostOfConfig(
  loaded: LoadedConfig,
  log: Logger = createLogger(),
  options: BuildOptions = {},
): Promise<Host> {
  const warned = new Set<string>()
  const warnings = createKeptWarnings()
  const first = warnOnce(log, warned, false, warnings)
  const built = await buildAccepted(loaded, first.log, { ...options, warnings })
  first.end()
  warnings.built()
  const rebuild = (next: LoadedConfig) =>
    buildAccepted(next, warnOnce(log, warned, true, warnings).log, { ...options, isReload: true })
  return reloadable(built, rebuild)
}

async function buildAccepted(loaded: LoadedConfig, log: Logger, options: BuildInput): Promise<BuiltHost> {
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
    const examined = { ...parts, directory: dirname(loaded.file), log }
    return (await Promise.all(parts.instances.map(instance => examinePlugin(instance, examined)))).flat()
  } finally {
    await host.close()
  }
}

/** Returns the options of each instance of a plugin, with defaults. Throws a ConfigError with all problems. */
export async function optionsOf(
  loaded: LoadedConfig,
  log: Logger,
  plugin: string,
): Promise<ReadonlyArray<Pick<PluginInstance, 'options' | 'at'>>> {
  const { host, parts } = await build(loaded, log, { purpose: 'inspect' })
  await host.close()
  return parts.instances.filter(({ name }) => name === plugin)
}

function warnOfIgnoredConfigs({ file, others = [] }: LoadedConfig, { report }: Problems): void {
  if (others.length === 0) return
  const named = others.map(other => basename(other)).join(', ')
  const what = `${basename(file)} is used, and ${named} in the same folder is ignored; delete one, or select one with --config`
  report(new StartError('MH1008', what, { at: [] }), 'warning')
}

/** Limits the lines of an own log. Its `close` also logs the number of suppressed lines. */
async function hostWithLog(loaded: LoadedConfig, log: Logger | undefined, options: BuildOptions): Promise<Host> {
  if (!log) return hostOfConfig(loaded, undefined, options)
  const missing = (['debug', 'info', 'warn', 'error', 'child'] as const).filter(name => typeof log[name] !== 'function')
  if (missing.length > 0) throw new TypeError(`\`log\` has no ${missing.join(', ')}; pass a logger such as pino`)
  const limited = limitLog(log, options.clock)
  const host = await hostOfConfig(loaded, limited, options)
  const close = host.close.bind(host)
  return Object.assign(host, {
    close: (...args: Parameters<Host['close']>) => close(...args).finally(limited.reportDropped),
  })
}

/** Builds the host of a config object. It starts serving with `listen()`. */
export async function createHost(config: Config, options: CreateHostOptions = {}): Promise<Host> {
  const { directory = process.cwd(), log, ...settings } = options
  return hostWithLog(
    { file: join(directory, 'config'), config, locate: () => undefined, isInline: true },
    log,
    settings,
  )
}

/** Finds and loads the config like the CLI, and builds its host. */
export async function loadHost(options: Parameters<typeof loadConfig>[0] & BuildOptions, log?: Logger): Promise<Host> {
  return hostWithLog(await loadConfig(options), log, options)
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

type ExaminedParts = Pick<HostParts, 'config' | 'log'> & Pick<HostInput, 'directory'>

function addressOf({ http: { publicUrl, host, port, tls } }: FilledConfig): string | undefined {
  if (publicUrl !== undefined) return publicUrl.replace(/\/$/, '')
  return port === 0 ? undefined : `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function examinePlugin(instance: PluginInstance, parts: ExaminedParts): Promise<PluginFinding[]> {
  const { name, options, general, routes } = instance
  const plugin: HostPlugin<object> = instance.plugin
  if (!plugin.examine) return []
  const label = general ? name : `${name} of ${routes[0]?.path}`
  const address = addressOf(parts.config)
  const about: InternalExamination = {
    at: instance.at,
    directory: parts.directory,
    services: createOutbound(),
    config: parts.config,
    log: parts.log.child({ plugin: name }),
    url: path => (address === undefined ? undefined : `${address}${path}`),
  }
  try {
    const findings = await plugin.examine(options, about)
    return findings.map(finding => ({ ...finding, check: `${label}: ${finding.check}` }))
  } catch (error) {
    const fix = 'this is a bug of the plugin: it must return its findings'
    return [{ check: label, level: 'wrong', text: `it could not be examined: ${errorText(error)}`, fix }]
  }
}

/** Builds a host from the valid part of an invalid config, to report further problems. Throws a ConfigError with all of them. */
async function findOtherProblems({ toolsets, problems, ...input }: HostInput): Promise<never> {
  const valid = [...toolsets].map(
    ([name, list]) => [name, list.filter(one => input.problemsOf(one).length === 0)] as const,
  )
  try {
    const { host } = await buildHost({ ...input, toolsets: new Map(valid), problems, purpose: 'inspect' })
    await host.close({ grace: 0 })
  } catch (error) {
    // Other errors are probably caused by the missing parts.
    if (error instanceof ConfigError) throw error
  }
  return problems.assertNone() as never
}
