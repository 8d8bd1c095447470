// `mcp-host stdio`: serves one route to the parent process until the end of input.

import { loadConfig } from '../core/config/load-config.ts'
import { hostOfConfig } from '../core/create-host.ts'
import { HostError } from '../core/http/errors.ts'
import type { Logger } from '../core/kernel/log.ts'
import { isObject } from '../core/mcp/wire/message.ts'
import { createStdioTransport, type StdioEnds } from '../plugins/transport-stdio/index.ts'
import { CONFIG_OPTION, defineCommand, LOG_OPTIONS } from './command.ts'
import { usage } from './context.ts'
import { openLog } from './log.ts'
import { nextInputEnd, onCrash, surviveRejections } from './serve.ts'

const NAME = 'transport-stdio'
const HTTP_PLUGINS = ['transport-streamable', 'transport-sse']

function withoutHttp(plugins: unknown): unknown {
  if (!isObject(plugins)) return plugins
  return Object.fromEntries(Object.entries(plugins).filter(([name]) => !HTTP_PLUGINS.includes(name)))
}

function withStdio(config: unknown, transport: ReturnType<typeof createStdioTransport>): unknown {
  if (!isObject(config)) return config
  const { plugins = {}, routes } = config
  if (!isObject(plugins)) return config
  const own = plugins[NAME]
  const configured = own === false ? false : transport.plugin((own ?? {}) as Parameters<typeof transport.plugin>[0])
  const open = Object.entries(isObject(routes) ? routes : {}).map(([path, route]) => {
    return [path, isObject(route) && route['plugins'] ? { ...route, plugins: withoutHttp(route['plugins']) } : route]
  })
  return {
    ...config,
    plugins: { ...(withoutHttp(plugins) as object), [NAME]: configured },
    ...(isObject(routes) && { routes: Object.fromEntries(open) }),
  }
}

type StdioHost = Awaited<ReturnType<typeof stdioHostOf>>

interface StdioSettings {
  readonly config: string | undefined
  readonly route: string | undefined
  readonly cwd: string
}

/** Throws a StartError for an invalid config. Does not listen or read input before it is started. */
async function stdioHostOf({ config, cwd }: StdioSettings, log: Logger) {
  const loaded = await loadConfig({ cwd, file: config })
  const transport = createStdioTransport()
  const host = await hostOfConfig({ ...loaded, config: withStdio(loaded.config, transport) }, log, { purpose: 'stdio' })
  return { host, transport }
}

interface StdioRoute {
  readonly path: string
  readonly params: Readonly<Record<string, string>>
}

/**
 * Finds a route by its configured path, or by a path such as `/t/clock` of `/t/:category?`. Default: the only route. Throws a
 * StartError that lists the routes.
 */
function findRoute({ host, transport }: StdioHost, selected: string | undefined): StdioRoute {
  const paths = host.routes.map(({ path }) => path)
  const known = `routes: ${paths.join(', ')}`
  if (selected === undefined && paths.length > 1)
    throw usage(`the config has several routes; select one with --route; ${known}`)
  const [single = '/'] = paths
  const wanted = selected ?? single
  const address = wanted.replace(/\/:\w+\?$/, '') || '/'
  if (address.includes('/:')) {
    const url = host.routes.find(({ path }) => path === wanted)?.url
    const example = url === undefined ? '/t/clock' : new URL(url, 'http://localhost').pathname
    throw usage(`--route ${wanted} has a parameter; give a path with its value, such as ${example}`)
  }
  const found = host.inspect(address.startsWith('/') ? address : `/${address}`)
  if (!found) throw usage(`--route ${wanted}: nothing is served there; ${known}`)
  const { path } = found.route
  if (transport.routes().includes(path)) return { path, params: found.params }
  throw usage(
    `routes['${path}'] disables ${NAME}; remove \`'${NAME}': false\` from its plugins, or use another --route`,
  )
}

export type Serving = Awaited<ReturnType<typeof serveStdio>>

/** The error if the route requires a user, because stdio has no authentication. */
function refused(path: string, thrown: unknown): unknown {
  if (!HostError.is(thrown)) return thrown
  const fix = "set plugins['transport-stdio'].user to a user that the route's `authorize` accepts"
  return usage(`routes['${path}'] refuses this client: ${thrown.message}; ${fix}`, thrown)
}

function withRoute<Value>(stdioHost: StdioHost, route: string | undefined, act: (place: StdioRoute) => Value): Value {
  const place = findRoute(stdioHost, route)
  try {
    return act(place)
  } catch (thrown) {
    throw refused(place.path, thrown)
  }
}

export async function checkStdio(settings: StdioSettings, log: Logger): Promise<void> {
  const stdioHost = await stdioHostOf(settings, log)
  try {
    withRoute(stdioHost, settings.route, ({ path, params }) => stdioHost.transport.authorize(path, params))
  } finally {
    await stdioHost.host.close({ grace: 0 })
  }
}

/** Throws a StartError before any input is read. */
export async function serveStdio(settings: StdioSettings, ends: StdioEnds, log: Logger) {
  const { route } = settings
  const stdioHost = await stdioHostOf(settings, log)
  const { host, transport } = stdioHost
  try {
    findRoute(stdioHost, route)
    await host.start()
    const line = withRoute(stdioHost, route, ({ path, params }) => transport.connect(path, params, ends))
    return {
      ended: line.ended,
      async close(): Promise<void> {
        await host.close({ handOver: false })
        await line.close()
      },
    }
  } catch (error) {
    await host.close({ grace: 0 }).catch(() => undefined)
    throw error
  }
}

export const stdioCommand = defineCommand({
  summary: 'Serve one route over stdin and stdout',
  example: '--route /clock',
  options: {
    ...CONFIG_OPTION,
    ...LOG_OPTIONS,
    route: { value: '<path>', help: 'Route path; optional with one route' },
  },
  notes: `For desktop clients: "command": "mcp-host", "args": ["stdio", "--config", "/home/me/tools/mcp.config.ts"].
plugins['transport-stdio'].user in the config sets the caller; default: anonymous. Output of tools is redirected to stderr.`,
  async run({ config, route, ...logging }, _positionals, context) {
    const { process: events, stdin: input, cwd } = context
    const output = context.stdout
    let serving = false
    const end = nextInputEnd(context).then(() => {
      if (!serving) context.exit(1)
    })
    const log = openLog(logging, context)
    const served = await serveStdio({ config, route, cwd }, { input, output }, log)
    serving = true
    surviveRejections(log, events)
    const crashed = new Promise<'crash'>(resolve => onCrash(log, events, () => resolve('crash')))
    const why = await Promise.race([served.ended, end, crashed])
    await served.close()
    await log.flush()
    return why === 'crash' ? 1 : 0
  },
})
