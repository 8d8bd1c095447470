// What a request's caller sees: the route's toolsets, changed by `configureSession`, cut to a view. A route without
// `configureSession` has its few views ready; a request only picks one.

import { HostError, StartError } from '../http/errors.ts'
import { type Report, reporting } from '../http/start-error.ts'
import type { User } from '../kernel/user.ts'
import type { AccessDecider, Audience } from './access-decider.ts'
import type { AdmitCaller, Offer, RequestFacts } from './call.ts'
import type { Catalog, CatalogItem } from './catalog.ts'
import type {
  ConfigureSession,
  RunSession,
  ServerSettings,
  SessionOptions,
  SessionRequest,
} from './configure-session.ts'
import type { Definition } from './define.ts'
import { isObject } from './is-object.ts'
import type { JsonObject } from './protocol.ts'
import type { CompiledRoute } from './routes.ts'
import { collect, type View, type ViewRequest } from './view.ts'

/** What offers are made of beside the definitions. A reload replaces it, and counts. */
export interface OfferedConfig {
  now: {
    readonly server: ServerSettings
    readonly configureSession?: ConfigureSession
    readonly runSession?: RunSession
  }
  reloads: number
}

export interface OfferSettings {
  readonly config: OfferedConfig
  readonly catalog: Catalog
  readonly viewFor: (request: ViewRequest, audience: Audience) => View
  /** Decides what a caller may use on a route. */
  readonly accessOn: (route: CompiledRoute) => AccessDecider
  /** Asked of callers whom no HTTP request brought through `admit`. */
  readonly admit: AdmitCaller
  /** True where what is listed may differ between callers of this route. */
  readonly varies: (route: CompiledRoute) => boolean
  /** The toolsets that plugins contribute to this route. */
  readonly contributed: (route: CompiledRoute) => readonly string[]
  /** What `capabilities.extensions` says on this route. */
  readonly extensions: (route: CompiledRoute) => Readonly<Record<string, JsonObject>>
  /** False where no plugin of this route decides `access`. */
  readonly decidesAccess: (route: CompiledRoute) => boolean
}

type Choice = Pick<ViewRequest, 'toolsets'> & Partial<ViewRequest>

/** What a view of this route is cut from, for this choice of toolsets. */
function requestView(settings: OfferSettings, route: CompiledRoute, choice: Choice): ViewRequest {
  const { config, varies, contributed, extensions: extensionsOn } = settings
  const toolsets = [...choice.toolsets, ...contributed(route)]
  const cacheScope = varies(route) ? 'private' : 'public'
  const extensions = { ...extensionsOn(route), ...choice.capabilities?.extensions }
  const capabilities = { ...choice.capabilities, ...(Object.keys(extensions).length > 0 && { extensions }) }
  return { extra: [], server: config.now.server, ...choice, capabilities, toolsets, cacheScope }
}

/** The view of a route. Throws a StartError where it has an item whose `access` nobody would decide. */
function cutView(
  { viewFor, decidesAccess, accessOn }: OfferSettings,
  route: CompiledRoute,
  request: ViewRequest,
  user?: User,
): View {
  const view = viewFor(request, accessOn(route).audienceOf(user, route))
  if (view.restricted && !decidesAccess(route)) {
    const { key, definition } = view.restricted
    const what = `routes['${route.path}'] serves "${key}", which asks for access "${definition.access}"`
    const why = `${what}, but no plugin of this route decides who has it; switch one on there`
    throw new StartError(why, { of: definition, at: ['access'], also: [{ at: ['routes', route.path] }] })
  }
  return view
}

const sessionRequest = ({ headers, user, route, params, ip }: RequestFacts): SessionRequest => ({
  headers,
  user,
  route: { path: route.path, params },
  ip,
})

/** What `configureSession` works on, and what it left behind. */
function createOptions(base: readonly string[], id: string | undefined, server: ServerSettings, catalog: Catalog) {
  const toolsets = new Set(base)
  const extra: CatalogItem[] = []
  const options: SessionOptions = {
    id,
    server,
    capabilities: {},
    get toolsets() {
      return [...toolsets]
    },
    addToolset(name) {
      if (!catalog.has(name)) throw new Error(`there is no toolset "${name}"; there are: ${catalog.names().join(', ')}`)
      toolsets.add(name)
    },
    removeToolset: name => void toolsets.delete(name),
    add(...definitions: Definition[]) {
      extra.push(...definitions.map(definition => catalog.compile(definition, 'configureSession')))
    },
  }
  return { options, extra }
}

/** Makes offers: for one request, or for as long as a session lasts. */
export function createOffers(settings: OfferSettings) {
  const { config, catalog, admit } = settings

  /** What `configureSession` makes of a route for one caller. */
  async function configured(base: readonly string[], facts: RequestFacts, route: CompiledRoute): Promise<ViewRequest> {
    const { server, configureSession } = config.now
    const { options, extra } = createOptions(base, facts.sessionId, server, catalog)
    await configureSession?.(sessionRequest(facts), options, { signal: facts.signal() })
    if (!isObject(options.server) || typeof options.server.name !== 'string') {
      throw new TypeError('configureSession left a `server` without a name')
    }
    const { toolsets, server: asked, capabilities } = options
    return requestView(settings, route, { toolsets: [...toolsets].sort(), extra, server: asked, capabilities })
  }

  // By the route first: a list of toolsets is the config's own, and two routes may have one list between them.
  let plain = new WeakMap<CompiledRoute, WeakMap<readonly string[], ViewRequest>>()
  const isPlain = new WeakSet<ViewRequest>()
  let reloads = config.reloads

  function unchanged(toolsets: readonly string[], route: CompiledRoute): ViewRequest {
    if (reloads !== config.reloads) {
      plain = new WeakMap()
      reloads = config.reloads
    }
    const ofRoute = plain.get(route) ?? new WeakMap<readonly string[], ViewRequest>()
    plain.set(route, ofRoute)
    const request = ofRoute.get(toolsets) ?? requestView(settings, route, { toolsets })
    ofRoute.set(toolsets, request)
    isPlain.add(request)
    return request
  }

  async function run(runSession: RunSession, facts: RequestFacts, body: () => Promise<void>, restored: boolean) {
    let running: Promise<void> | undefined
    const once = () => {
      running ??= body()
      // Whoever forgets to wait for it must not end the process.
      running.catch(() => undefined)
      return running
    }
    await runSession(sessionRequest(facts), { id: facts.sessionId, restored }, once, { signal: facts.signal() })
    if (!running) throw new TypeError('runSession returned without having called `run`')
    await running
  }

  const runIn =
    (runSession: RunSession, facts: RequestFacts): Offer['run'] =>
    (body, restored = false) =>
      run(runSession, facts, body, restored)

  // One a route: a hundred thousand idle sessions must not each have their own.
  const ways = new WeakMap<CompiledRoute, Way>()
  function wayOf(route: CompiledRoute): Way {
    const way = ways.get(route) ?? {
      config,
      cut: (request, asker) => cutView(settings, route, request, asker),
      renew(request, params) {
        // Of a category that is gone its sessions keep the name, and nothing in it.
        return isPlain.has(request) ? unchanged(route.toolsetsFor(params) ?? request.toolsets, route) : request
      },
    }
    ways.set(route, way)
    return way
  }

  /** Throws `notFound` where the address names no toolset, and as `admit` for a caller who was not admitted yet. */
  return async function makeOffer(facts: RequestFacts): Promise<Offer> {
    const { params, user, ip, sessionId } = facts
    const route = facts.route as CompiledRoute
    if (!facts.admitted) admit(facts)
    const base = route.toolsetsFor(params)
    if (!base) throw new HostError('notFound', { detail: 'there is nothing at this address' })
    const { configureSession, runSession } = config.now
    const request = configureSession ? await configured(base, facts, route) : unchanged(base, route)
    // Without `runSession` nothing of the request that opened the session is kept.
    const runs = runSession && runIn(runSession, facts)
    return new CallerOffer({ route, params, user, ip, sessionId }, request, wayOf(route), runs)
  }
}

/** How a route's offers come to their views. */
interface Way {
  readonly config: OfferedConfig
  cut(request: ViewRequest, user: User | undefined): View
  /** What a view is cut from after a reload: what the route serves now, unless `configureSession` chose. */
  renew(request: ViewRequest, params: RequestFacts['params']): ViewRequest
}

type OfferFacts = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip'> & { readonly sessionId: string | undefined }

class CallerOffer implements Offer {
  readonly route: Offer['route']
  readonly params: Offer['params']
  readonly user: Offer['user']
  readonly ip: string
  readonly sessionId: string | undefined
  readonly #way: Way
  #request: ViewRequest
  #reloads: number
  readonly #runs: Offer['run'] | undefined

  constructor(facts: OfferFacts, request: ViewRequest, way: Way, runs: Offer['run'] | undefined) {
    this.route = facts.route
    this.params = facts.params
    this.user = facts.user
    this.ip = facts.ip
    this.sessionId = facts.sessionId
    this.#way = way
    this.#request = request
    this.#reloads = way.config.reloads
    this.#runs = runs
  }

  #now(): ViewRequest {
    if (this.#reloads !== this.#way.config.reloads) {
      this.#request = this.#way.renew(this.#request, this.params)
      this.#reloads = this.#way.config.reloads
    }
    return this.#request
  }
  get view() {
    return this.#way.cut(this.#now(), this.user)
  }
  viewFor(user: User | undefined) {
    return this.#way.cut(this.#now(), user)
  }
  toolsets() {
    return this.#now().toolsets
  }
  get spansRun() {
    return this.#runs !== undefined
  }
  run(body: () => Promise<void>, restored?: boolean) {
    return this.#runs ? this.#runs(body, restored) : body()
  }
}

/** Builds every view that can be known before a request comes, so that a clash of names stops the start. */
export function checkViews(routes: readonly CompiledRoute[], settings: OfferSettings, report: Report): void {
  for (const route of routes) {
    for (const toolsets of route.knownCombinations()) {
      const request = requestView(settings, route, { toolsets })
      let clashes = 0
      collect(settings.catalog, request, mistake => {
        clashes += 1
        report(mistake)
      })
      if (clashes === 0) reporting(report, () => cutView(settings, route, request))
    }
  }
}
