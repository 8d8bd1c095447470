// A host of the config whose one transport is stdio, and which of its routes a client is to be served.
import { type Host, hostOf, type LoadedConfig, type Logger } from '../../core/create-host.ts'
import { StartError } from '../../core/http/errors.ts'
import { isObject } from '../../core/mcp/is-object.ts'
import { createStdioTransport } from '../../plugins/transport-stdio/index.ts'

const NAME = 'transport-stdio'
/** Nothing listens: they would have nothing to do, and the methods that they add are added by this one. */
const OVER_HTTP = ['transport-streamable', 'transport-sse']

type StdioTransport = ReturnType<typeof createStdioTransport>

function withoutHttp(plugins: unknown): unknown {
  if (!isObject(plugins)) return plugins
  return Object.fromEntries(Object.entries(plugins).filter(([name]) => !OVER_HTTP.includes(name)))
}

/** The config with `transport` in the place of its own, on all routes where it is not switched off. */
function withStdio(config: unknown, transport: StdioTransport): unknown {
  // What is wrong with its shape is told where it is checked.
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

export interface StdioHost {
  readonly host: Host
  readonly transport: StdioTransport
}

/** Throws a StartError for a config that cannot be served. Nothing listens, and nothing is read before it is started. */
export async function stdioHostOf(loaded: LoadedConfig, log: Logger): Promise<StdioHost> {
  const transport = createStdioTransport()
  const host = await hostOf({ ...loaded, config: withStdio(loaded.config, transport) }, log, { purpose: 'stdio' })
  return { host, transport }
}

export interface ServedPlace {
  readonly path: string
  readonly params: Readonly<Record<string, string>>
}

const usage = (what: string) => new StartError(what, { exitCode: 2 })

/**
 * The route of `asked`: its path in the config, or an address of it, such as `/t/clock` of `/t/:category?`. Undefined: the
 * only one. Throws a StartError that says which there are.
 */
export function findPlace({ host, transport }: StdioHost, asked: string | undefined): ServedPlace {
  const paths = host.routes.map(({ path }) => path)
  const known = `there ${paths.length === 1 ? 'is' : 'are'}: ${paths.join(', ')}`
  if (asked === undefined && paths.length > 1)
    throw usage(`the config has several routes; say which with --route; ${known}`)
  const [only = '/'] = paths
  // A last parameter that may be left out is left out.
  const address = (asked ?? only).replace(/\/:\w+\?$/, '') || '/'
  if (address.includes('/:')) {
    throw usage(
      `--route ${asked ?? only} has a parameter; give an address with its value, such as ${exampleOf(host, only, asked)}`,
    )
  }
  const found = host.inspect(address.startsWith('/') ? address : `/${address}`)
  if (!found) throw usage(`--route ${asked ?? only}: nothing is served there; ${known}`)
  const { path } = found.route
  if (transport.routes().includes(path)) return { path, params: found.params }
  throw usage(
    `routes['${path}'] has ${NAME} switched off; take \`'${NAME}': false\` out of its plugins, or give another --route`,
  )
}

function exampleOf(host: Host, only: string, asked: string | undefined): string {
  const url = host.routes.find(({ path }) => path === (asked ?? only))?.url
  return url === undefined ? '/t/clock' : new URL(url, 'http://localhost').pathname
}
