// `testPlugin`: runs one plugin on a real host with a transport and the tool `echo`.
import type { Config } from '../config/define-config.ts'
import type { ConfiguredPlugin } from '../kernel/define-plugin.ts'
import { defineTool } from '../mcp/define.ts'
import { type TestHost, type TestHostSettings, testHost } from './test-host.ts'

/** Settings of `testPlugin`. */
export interface TestPluginSettings extends TestHostSettings {
  /** The plugin's name in config and messages. Default `plugin`. */
  name?: string
  /** Merged over a config with the toolset `echo` at `/`. */
  config?: Partial<Config> & Readonly<Record<string, unknown>>
}

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

type Factory<Options> = (options?: Options) => ConfiguredPlugin

/** Starts a host with the configured plugin and the tool `echo` at `/`. Rejects with a StartError. */
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
