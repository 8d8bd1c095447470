// What an instance of the plugin serves, once all routes and transports are known: which routes have documents, under which names.
import { isLoopback } from '../../core/auth.ts'
import {
  type FilledOptions,
  type Implementation,
  type McpRoute,
  type PluginHost,
  type Services,
  StartError,
} from '../../core/index.ts'
import { CARD, CATALOG, knownAddresses, MOST_TEXT, NAME, nameAt } from './addresses.ts'
import { cardEndpoint, catalogEndpoint, type Published } from './documents.ts'

type Filled = FilledOptions['discovery']

/** Characters of the name of a server that a card has room for. */
const MOST_NAME = 200

/** What the instances of one host publish together: there is one catalog. */
interface Shared {
  readonly all: Published[]
  hasCatalog: boolean
}

const SHARED = Symbol('what discovery publishes')

/** The routes whose documents anybody may have. */
function openRoutes({ routes, log }: PluginHost, { protectedRoutes }: Filled): readonly McpRoute[] {
  const served = routes.filter(({ revisions }) => revisions.length > 0)
  const hidden = served.filter(({ authorize }) => authorize !== undefined && !protectedRoutes)
  if (hidden.length > 0) {
    const fix = 'where everybody may know that they are there, set protectedRoutes: true'
    log.info({ routes: hidden.map(({ path }) => path), fix }, 'protected routes are in no discovery document')
  }
  return served.filter(route => !hidden.includes(route))
}

/** Reports what would make documents that clients must refuse. */
function check(host: PluginHost, options: Filled, { name, description, title }: Implementation) {
  const { http, report, at, log } = host
  const refuse = (why: string, ...keys: string[]) => report(new StartError(why, { at: [...at, ...keys] }))
  if (options.name === undefined && !NAME.test(name)) {
    const why = `missing: server.name is "${name}", and a card has a reversed domain name and a name`
    refuse(`${why}; write one, such as "com.acme/tools"`, 'name')
  }
  const text = options.description ?? description ?? title ?? name
  if (text.length > MOST_TEXT || text === '') {
    const why = `missing: server.description has ${text.length} characters, and a card has room for ${MOST_TEXT}`
    refuse(`${why}; write a shorter one`, 'description')
  }
  if (http.publicUrl === undefined && !isLoopback(http.host)) {
    refuse(`set http.publicUrl; its documents say how clients reach this host, and ${http.host} does not`)
  }
  if (http.publicUrl?.startsWith('http:') && !isLoopback(new URL(http.publicUrl).hostname)) {
    log.warn({ publicUrl: http.publicUrl }, 'http.publicUrl is not https: clients must not believe these documents')
  }
}

/** Reports two addresses of one name: an identifier is for one server. */
function checkNames({ at, report }: PluginHost, { all }: Shared, own: Published) {
  const seen = new Map<string, string>()
  for (const published of all) {
    for (const route of published.routes) {
      for (const params of knownAddresses(route)) {
        const name = nameAt(published.name, route, params)
        const twin = seen.get(name)
        seen.set(name, twin ?? route.path)
        if (name.length > MOST_NAME && published === own) {
          report(new StartError(`"${name}" is too long for a name; ${MOST_NAME} characters are the most`, { at }))
        }
        if (twin === undefined || published !== own) continue
        const why = `routes['${route.path}'] and routes['${twin}'] would both be called "${name}"`
        report(new StartError(`${why}; give one a name of its own, in its \`plugins\``, { at }))
      }
    }
  }
}

/** Serves the documents of these routes. Reports options of which none can be made. */
export function publish(host: PluginHost, options: Filled, services: Services): void {
  const { experimental, name, description } = options
  const shared = host.share<Shared>(SHARED, () => ({ all: [], hasCatalog: false }))
  const server = () => services.serverInfo()
  check(host, options, server())
  const published: Published = {
    routes: openRoutes(host, options),
    name: name ?? server().name,
    description,
    hasCards: experimental.includes('server-card'),
    inCatalog: experimental.includes('ai-catalog'),
  }
  shared.all.push(published)
  if (published.hasCards) {
    host.routeEndpoint(CARD, route =>
      published.routes.includes(route) ? cardEndpoint(published, route, server) : undefined,
    )
  }
  if (published.inCatalog && !shared.hasCatalog) {
    shared.hasCatalog = true
    host.endpoint(CATALOG, catalogEndpoint(shared.all, server))
  }
  host.checking(() => checkNames(host, shared, published))
}
