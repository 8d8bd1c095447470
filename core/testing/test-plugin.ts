// `testPlugin`: one plugin on a real host, beside a transport and a tool that says what it was called with.
import type { Config } from '../config/define-config.ts'
import type { ConfiguredPlugin } from '../kernel/define-plugin.ts'
import { defineTool } from '../mcp/define.ts'
import { type TestHost, type TestHostSettings, testHost } from './test-host.ts'

/** How a plugin is served in a test. */
export interface TestPluginSettings extends TestHostSettings {
  /** What it is called in the config, and in messages. Default `plugin`. */
  name?: string
  /** Over a config with the toolset `echo` at `/`: other routes, toolsets, `http.publicUrl`, sections that the plugin reads. */
  config?: Partial<Config> & Readonly<Record<string, unknown>>
}

/** Says who called it, and with what. */
const echo = defineTool({
  name: 'echo',
  description: 'Says who called it, and with what.',
  handler: (args, { user, route, session }) => ({
    args,
    user: user ? { subject: user.subject, scopes: user.scopes, roles: user.roles } : null,
    route: route.path,
    session: session !== undefined,
  }),
})

/** A plugin as `definePlugin` makes it: the call that configures it. */
type Factory<Options> = (options?: Options) => ConfiguredPlugin

/**
 * Starts a host with this plugin, configured with these options, a transport, and the tool `echo` at `/`. Rejects with the
 * StartError that an operator would see.
 */
export function testPlugin<Options extends object>(
  plugin: Factory<Options>,
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
