// Replaces the issuers of authentication plugins by test issuers.

import type { UnderTest } from '../access/claims.ts'
import type { Config, PluginsSettings, RoutePluginsSettings } from '../config/define-config.ts'
import { isConfiguredPlugin } from '../kernel/define-plugin.ts'
import { isObject } from '../mcp/is-object.ts'
import type { Plugin } from '../plugin-host.ts'

type Issue = UnderTest<object>['issue']

export interface Repointed {
  readonly config: Config
  /** Throws if no plugin of the route accepts test tokens. */
  issue(route: string, ...given: Parameters<Issue>): string
  close(): Promise<void>
}

const optionsOf = (value: unknown): object => {
  if (isConfiguredPlugin(value)) return value.options
  return isObject(value) ? value : {}
}

const withOptions = (value: unknown, options: object) => (isConfiguredPlugin(value) ? { ...value, options } : options)

export async function repoint(config: Config, plugins: ReadonlyMap<string, Plugin<object>>): Promise<Repointed> {
  const opened: UnderTest<object>[] = []
  const issuers = new Map<string | undefined, Map<string, Issue | undefined>>()

  async function repointed<Settings extends PluginsSettings | RoutePluginsSettings>(
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
      changed[name] = withOptions(value, test.options)
    }
    return changed as Settings
  }

  const general = await repointed(config.plugins ?? {})
  const routes: Config['routes'] = {}
  for (const [path, settings] of Object.entries(config.routes)) {
    routes[path] = settings.plugins ? { ...settings, plugins: await repointed(settings.plugins, path) } : settings
  }

  function issuerOn(route: string): Issue {
    const acting = new Map([...(issuers.get(undefined) ?? []), ...(issuers.get(route) ?? [])])
    const [issue] = [...acting.values()].filter(issue => issue !== undefined)
    if (issue) return issue
    const names = [...acting.keys()].filter(name => config.plugins?.[name] !== false)
    const why =
      names.length > 0
        ? `plugins.${names[0]} says who calls, and has no \`underTest\`: give client({ token }) what it takes`
        : 'no plugin of this route finds out who calls'
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
