// What a request's caller sees: the route's toolsets, changed by `configureSession`, cut to a view. A route without
// `configureSession` has its few views ready; a request only picks one.
import type { OpenSession, RequestFacts } from './call.ts'
import { isObject } from './call.ts'
import type { Catalog, CatalogItem } from './catalog.ts'
import type { Definition } from './define.ts'
import type { Config, ServerSettings, SessionOptions, SessionRequest } from './define-config.ts'
import { HostError, StartError } from './errors.ts'
import type { CompiledRoute } from './routes.ts'
import type { View, ViewRequest } from './view.ts'

export interface SessionSettings {
  readonly config: Pick<Config, 'server' | 'configureSession' | 'runSession'>
  readonly catalog: Catalog
  readonly viewFor: (request: ViewRequest) => View
  /** True where what is listed may differ between callers of this route. */
  readonly varies: (route: CompiledRoute) => boolean
  /** The toolsets that plugins contribute to this route. */
  readonly contributed: (route: CompiledRoute) => readonly string[]
  /** False where no plugin of this route decides `access`. */
  readonly decidesAccess: (route: CompiledRoute) => boolean
}

type Choice = Pick<ViewRequest, 'toolsets'> & Partial<ViewRequest>

/** The view of a route for this choice. Throws a StartError where it has an item whose `access` nobody would decide. */
function cutView(settings: SessionSettings, route: CompiledRoute, choice: Choice): View {
  const { config, viewFor, varies, contributed, decidesAccess } = settings
  const toolsets = [...choice.toolsets, ...contributed(route)]
  const cacheScope = varies(route) ? 'private' : 'public'
  const view = viewFor({ extra: [], server: config.server, capabilities: {}, ...choice, toolsets, cacheScope })
  if (view.restricted && !decidesAccess(route)) {
    const { key, definition } = view.restricted
    const what = `routes['${route.path}'] serves "${key}", which asks for access "${definition.access}"`
    throw new StartError(`${what}, but no plugin of this route decides who has it`, { exitCode: 2 })
  }
  return view
}

function sessionRequest({ headers, user, route, params, ip }: RequestFacts): SessionRequest {
  return { headers, user, route: { path: route.path, params }, ip }
}

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

/** Opens sessions: for one request, or for as long as a session lasts. */
export function createSessions(settings: SessionSettings) {
  const { config, catalog } = settings
  const { server, configureSession, runSession } = config

  async function configured(base: readonly string[], facts: RequestFacts, route: CompiledRoute): Promise<View> {
    const { options, extra } = createOptions(base, facts.sessionId, server, catalog)
    await configureSession?.(sessionRequest(facts), options, { signal: facts.signal() })
    if (!isObject(options.server) || typeof options.server.name !== 'string') {
      throw new TypeError('configureSession left a `server` without a name')
    }
    const { toolsets, server: asked, capabilities } = options
    return cutView(settings, route, { toolsets: [...toolsets].sort(), extra, server: asked, capabilities })
  }

  // Each list of toolsets is one object that belongs to one route, so it names the view by itself.
  let ready = new WeakMap<readonly string[], View>()
  let generation = catalog.generation()

  function viewOf(facts: RequestFacts, route: CompiledRoute): View | Promise<View> {
    const base = route.toolsetsFor(facts.params)
    if (!base) throw new HostError('notFound', { detail: 'there is nothing at this address' })
    if (configureSession) return configured(base, facts, route)
    if (generation !== catalog.generation()) {
      generation = catalog.generation()
      ready = new WeakMap()
    }
    const view = ready.get(base) ?? cutView(settings, route, { toolsets: base })
    ready.set(base, view)
    return view
  }

  async function run(facts: RequestFacts, body: () => Promise<void>) {
    if (!runSession) return body()
    let running: Promise<void> | undefined
    const once = () => {
      running ??= body()
      // Whoever forgets to wait for it must not end the process.
      running.catch(() => undefined)
      return running
    }
    await runSession(sessionRequest(facts), { id: facts.sessionId }, once, { signal: facts.signal() })
    if (!running) throw new TypeError('runSession returned without having called `run`')
    await running
  }

  /** Throws `notFound` where the address names no toolset. */
  return async function openSession(facts: RequestFacts): Promise<OpenSession> {
    const view = viewOf(facts, facts.route as CompiledRoute)
    return { ...facts, view: view instanceof Promise ? await view : view, run: body => run(facts, body) }
  }
}

/** Builds every view that can be known before a request comes, so that a clash of names stops the start. */
export function checkViews(routes: readonly CompiledRoute[], settings: SessionSettings): void {
  for (const route of routes) {
    for (const toolsets of route.knownCombinations()) cutView(settings, route, { toolsets })
  }
}
