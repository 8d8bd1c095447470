// `testHost` and `testPlugin`: serve a config on a free port, with test users.
import { randomBytes } from 'node:crypto'
import { basename, dirname, resolve } from 'node:path'
import type { TestUser, UnderTest } from '../access/claims.ts'
import type { Config, PluginsSettings, RoutePluginsSettings } from '../config/define-config.ts'
import { loadConfig } from '../config/load-config.ts'
import { optionsOf } from '../config/plan-options.ts'
import { createHost, pluginsFor } from '../create-host.ts'
import type { Host } from '../host.ts'
import type { Clock } from '../http/clock.ts'
import { StartError } from '../http/errors.ts'
import { definePlugin } from '../internal.ts'
import type { Services } from '../internal-host.ts'
import { type ConfiguredPlugin, isConfiguredPlugin } from '../kernel/define-plugin.ts'
import { defineTool } from '../mcp/definitions/define.ts'
import type { McpRoute } from '../mcp/routes/routes.ts'
import { isObject } from '../mcp/wire/message.ts'
import type { Plugin } from '../plugin-host.ts'
import { type ClientSettings, openClient, type TestClient } from './test-client.ts'
import { createTestLog, type LoggedLine, type RecordedChange, recordChanges } from './test-log.ts'

/** Settings of `testHost`. */
export interface TestHostSettings {
  /** Base of relative paths. Default: the working directory, or the folder of the config file. */
  directory?: string
  /** Overrides plugins of the config; `false` disables one. */
  plugins?: PluginsSettings
  /** `PluginHost.config.purpose`. With `test` (default), plugins do not use configured files and ports. */
  purpose?: 'serve' | 'test'
  clock?: Clock
}

interface TokenSettings {
  /** Default: the path of the first route. */
  route?: string
  /** Seconds; negative: expired. Default 3,600. */
  expiresIn?: number
}

/** A running host. `await using` closes it. */
export interface TestHost extends AsyncDisposable {
  readonly url: string
  readonly host: Host
  client(settings?: ClientSettings): Promise<TestClient>
  /** Issues a token. Throws if no plugin of the route accepts test tokens. */
  token(user?: TestUser, settings?: TokenSettings): string
  logged(level?: LoggedLine['level']): readonly LoggedLine[]
  changes(): readonly RecordedChange[]
  close(): Promise<void>
}

const WATCHER = 'mcp-host/testing'

function toTestConfig(config: Config, plugins: PluginsSettings, transports: readonly string[]): Config {
  const isOn = (name: string) => plugins[name] !== undefined && plugins[name] !== false
  const [transport] = transports
  const { tls: _, ...http } = config.http ?? {}
  return {
    ...config,
    http: { ...http, host: '127.0.0.1', port: 0 },
    secrets: [randomBytes(32).toString('base64')],
    plugins: { ...(transport !== undefined && !transports.some(isOn) && { [transport]: {} }), ...plugins },
  }
}

function createWatcher() {
  const seen: { services?: Services; routes: readonly McpRoute[] } = { routes: [] }
  const plugin = definePlugin<Record<never, never>>({
    setup(host) {
      host.onReady(() => void Object.assign(seen, { services: host.services, routes: host.routes }))
    },
  })
  return { seen, plugin }
}

type Issue = UnderTest<object>['issue']

interface TestConfig {
  readonly config: Config
  /** Throws if no plugin of the route accepts test tokens. */
  issue(route: string, ...given: Parameters<Issue>): string
  close(): Promise<void>
}

async function useTestIssuers(config: Config, plugins: ReadonlyMap<string, Plugin<object>>): Promise<TestConfig> {
  const opened: UnderTest<object>[] = []
  const issuers = new Map<string | undefined, Map<string, Issue | undefined>>()

  async function replacePlugins<Settings extends PluginsSettings | RoutePluginsSettings>(
    settings: Settings,
    route?: string,
  ) {
    const own = new Map<string, Issue | undefined>()
    issuers.set(route, own)
    const changed: Record<string, unknown> = { ...settings }
    for (const [name, value] of Object.entries(settings)) {
      const plugin = plugins.get(name)
      if (!plugin?.provides?.includes('user') || value === undefined) continue
      own.set(name, undefined)
      if (value === false || !plugin.underTest) continue
      const general = route === undefined ? {} : optionsOf(config.plugins?.[name])
      const test = await plugin.underTest({ ...general, ...optionsOf(value) })
      opened.push(test)
      own.set(name, test.issue)
      changed[name] = isConfiguredPlugin(value) ? { ...value, options: test.options } : test.options
    }
    return changed as Settings
  }

  const general = await replacePlugins(config.plugins ?? {})
  const routes: Config['routes'] = {}
  for (const [path, settings] of Object.entries(config.routes)) {
    routes[path] = settings.plugins ? { ...settings, plugins: await replacePlugins(settings.plugins, path) } : settings
  }

  function issuerOn(route: string): Issue {
    const acting = new Map([...(issuers.get(undefined) ?? []), ...(issuers.get(route) ?? [])])
    const [issue] = [...acting.values()].filter(issue => issue !== undefined)
    if (issue) return issue
    const names = [...acting.keys()].filter(name => config.plugins?.[name] !== false)
    const why =
      names.length > 0
        ? `plugins.${names[0]} authenticates callers and has no \`underTest\`: pass a token with client({ token })`
        : 'no plugin of this route authenticates callers'
    throw new Error(`there is no token for routes['${route}']: ${why}`)
  }

  return {
    config: { ...config, plugins: general, routes },
    issue: (route, ...given) => issuerOn(route)(...given),
    async close() {
      await Promise.all(opened.map(test => test.close?.()))
    },
  }
}

async function configOf(source: Config | string, directory: string | undefined) {
  if (typeof source !== 'string') return { config: source, directory: directory ?? process.cwd() }
  const file = resolve(directory ?? process.cwd(), source)
  const { config } = await loadConfig({ cwd: dirname(file), file: basename(file) })
  return { config: config as Config, directory: dirname(file) }
}

async function prepare(config: Config, overrides: PluginsSettings | undefined, directory: string): Promise<TestConfig> {
  const unchanged = { config, issue: () => '', close: async () => undefined }
  if (!isObject(config) || !isObject(config.routes)) return unchanged
  const plugins = { ...config.plugins, ...overrides }
  const known = await pluginsFor({ ...config, plugins }, directory).catch(() => undefined)
  if (!known) return { ...unchanged, config: { ...config, plugins } }
  const transports = [...known].filter(([, { provides }]) => provides?.includes('transport')).map(([name]) => name)
  return useTestIssuers(toTestConfig(config, plugins, transports), known)
}

/**
 * Serves a config on a free port of 127.0.0.1 with plain HTTP, new keys, test tokens and a log in memory. Adds a
 * transport if none is configured. Rejects with a StartError.
 */
export async function testHost(source: Config | string, settings: TestHostSettings = {}): Promise<TestHost> {
  const { purpose = 'test' } = settings
  const { config, directory } = await configOf(source, settings.directory)
  const prepared = await prepare(config, settings.plugins, directory)
  const { seen, plugin } = createWatcher()
  const log = createTestLog()
  let host: Host
  try {
    const { config } = prepared
    const watched = () => ({ ...config, plugins: { ...config.plugins, [WATCHER]: plugin() } })
    host = await createHost(isObject(config) ? watched() : config, {
      directory,
      log,
      purpose,
      ...(settings.clock && { clock: settings.clock }),
    })
    await host.listen()
  } catch (error) {
    await prepared.close()
    throw error
  }
  host.unref()
  return openTestHost({ host, prepared, log: log.lines, ...seen })
}

interface Started {
  readonly host: Host
  readonly prepared: TestConfig
  readonly log: readonly LoggedLine[]
  readonly services?: Services
  readonly routes: readonly McpRoute[]
}

function openTestHost({ host, prepared, log, services, routes }: Started): TestHost {
  if (!services) throw new StartError('MH1920', 'the host has no services')
  const buses = new Set(routes.map(route => services.slot('changeBus', route)))
  const changes: RecordedChange[] = []
  const watching = [...buses].map(bus => recordChanges(bus, changes))
  const clients = new Set<TestClient>()
  const first = () => host.routes[0]?.samplePath ?? '/'

  function token(user: TestUser = {}, { route = first(), expiresIn = 3_600 }: TokenSettings = {}): string {
    const found = host.inspect(route)
    if (!found)
      throw new Error(`nothing is served at ${route}; available: ${host.routes.map(({ path }) => path).join(', ')}`)
    const resource = services?.slot('protectedResource', found.route).resourceOf(found.route, found.params) ?? ''
    return prepared.issue(found.route.path, user, resource, expiresIn)
  }

  let closing: Promise<void> | undefined
  async function end() {
    await Promise.all([...clients].map(client => client.close()))
    for (const stop of watching) stop()
    await host.close({ grace: 0 })
    await prepared.close()
  }
  function close() {
    closing ??= end()
    return closing
  }

  return {
    url: host.url,
    host,
    token,
    async client(settings = {}) {
      const { route = first(), user } = settings
      const bearer = settings.token ?? (user && token(user, { route }))
      const client = await openClient(new URL(route, host.url), settings, bearer)
      clients.add(client)
      return client
    },
    logged: level => log.filter(line => level === undefined || line.level === level),
    changes: () => [...changes],
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Settings of `testPlugin`. */
interface TestPluginSettings extends TestHostSettings {
  /** The plugin's name in config and messages. Default `plugin`. */
  name?: string
  /** Merged over a config with the toolset `echo` at `/`. */
  config?: Partial<Config> & Readonly<Record<string, unknown>>
}

const echo = defineTool({
  name: 'echo',
  description: 'Returns its caller and its arguments.',
  handler: (args, { user, route, session }) => ({
    args,
    user: user ? { subject: user.subject, scopes: user.scopes, roles: user.roles } : null,
    route: route.path,
    session: session !== undefined,
  }),
})

/** Starts a host with the configured plugin and the tool `echo` at `/`. Rejects with a StartError. */
export function testPlugin<Options extends object>(
  plugin: (options?: Options) => ConfiguredPlugin,
  options?: Options,
  { name = 'plugin', config = {}, ...settings }: TestPluginSettings = {},
): Promise<TestHost> {
  const base: Config = {
    server: { name: 'test-host', version: '1.0.0' },
    toolsets: { echo: [echo] },
    routes: { '/': { toolsets: 'echo' } },
  }
  return testHost({ ...base, ...config, plugins: { [name]: plugin(options), ...config.plugins } }, settings)
}
