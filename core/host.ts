// A host's life: plan the plugins, load the definitions, set up, compile the pipeline, listen, drain, close.
import { randomBytes } from 'node:crypto'
import { openAccess, plainResource } from './access/access.ts'
import { createAdmission } from './access/admission.ts'
import { type InspectedAddress, inspectAddress } from './access/inspect-access.ts'
import { createLeastScopes, itemsOn, type LeastScopes, warnUntoldScopes } from './access/least-scopes.ts'
import { warnOpenDoors } from './access/warn-open-doors.ts'
import { faultsOf } from './config/check-definition.ts'
import type { FilledConfig } from './config/define-config.ts'
import { loadToolsets } from './config/load-toolsets.ts'
import { resolveHttp, resolveSessions, resolveTools } from './config/resolve-settings.ts'
import { createHttpServer } from './http/create-server.ts'
import { collectEndpoints } from './kernel/collect-endpoints.ts'
import type { Plugin } from './kernel/define-plugin.ts'
import { createEnding, type Ending } from './kernel/ending.ts'
import type { ResolvedHttp } from './kernel/http-settings.ts'
import { createInFlight } from './kernel/in-flight.ts'
import { addressOf, listenOn } from './kernel/listen.ts'
import type { Logger } from './kernel/log.ts'
import { createPipeline } from './kernel/pipeline.ts'
import { checkReadiness, createNotes, notesFor, type PluginNotes, setUpPlugins } from './kernel/plugin-host.ts'
import { checkConventions, planPlugins, providersAmong } from './kernel/plugin-plan.ts'
import { type CompiledRoute, compileRoutes } from './kernel/routes.ts'
import { createSecrets, type Secrets } from './kernel/secrets.ts'
import { createMemoryChangeBus, type Slots } from './kernel/slots.ts'
import type { Call } from './mcp/call.ts'
import { type Catalog, createCatalog } from './mcp/catalog.ts'
import type { HandlerSettings } from './mcp/context.ts'
import type { Definition, RuntimeHost } from './mcp/define.ts'
import { createDispatch } from './mcp/dispatch.ts'
import { createMethodTable } from './mcp/methods/index.ts'
import { checkViews, createSessions, type SessionSettings } from './mcp/offer.ts'
import type { Revision } from './mcp/protocol.ts'
import { type RouteSummary, summarizeRoute } from './mcp/route-summary.ts'
import { createStallWatch } from './mcp/stall-watch.ts'
import { createViews } from './mcp/view.ts'
import { createChangeFeed } from './sessions/change-feed.ts'
import { createMemoryEventStore } from './sessions/event-store.ts'
import { createSharedSessions } from './sessions/nodes/shared-sessions.ts'
import { createSessionRegistry, type SessionRegistry } from './sessions/registry.ts'
import { createSessionIds } from './sessions/session-id.ts'
import { createSessionStreams } from './sessions/session-streams.ts'
import { checkSharing, keepsSessions } from './sessions/sharing.ts'

export interface Host extends Ending {
  /** `http://address:port` once it listens. */
  readonly url: string
  readonly routes: readonly RouteSummary[]
  readonly runtime: RuntimeHost
  /** Runs what plugins start before the host listens; `listen` does it too. */
  start(): Promise<void>
  /** Who may do what at a path, decided without a request; undefined where nothing is served. */
  inspect(path: string): InspectedAddress | undefined
  /** Resolves once requests are accepted. Rejects with a StartError, for a busy port too. */
  listen(): Promise<void>
}

export interface HostInput {
  readonly config: FilledConfig
  /** Every plugin that the config names. */
  readonly plugins: ReadonlyMap<string, Plugin<object>>
  /** The config's paths are relative to it. */
  readonly directory: string
  readonly log: Logger
  /** How many processes serve this config behind one address. Default 1. */
  readonly processes?: number
}

/** What the parts of a host share while it is built. */
interface Parts {
  readonly config: FilledConfig
  readonly http: ResolvedHttp
  readonly log: Logger
  readonly routes: readonly CompiledRoute[]
  readonly catalog: Catalog
  readonly notes: PluginNotes
  readonly slots: Slots
  readonly secrets: Secrets
  readonly leastScopes: LeastScopes
}

function handlerSettings({ config, catalog, secrets, slots, leastScopes, log, notes }: Parts): HandlerSettings {
  const { callTimeout, fetchTimeout, stallWarning } = resolveTools(config.tools)
  const stalls = createStallWatch(stallWarning, log, notes)
  return {
    callTimeout,
    fetchTimeout,
    stalls,
    openRuntime: catalog.openRuntime,
    stateKeys: secrets.keys('request-state'),
    admit: createAdmission({ access: () => slots.access, resource: () => slots.protectedResource, leastScopes }),
  }
}

/** Newest first, whichever transport names them; their names are dates. */
const revisionsOf = (notes: PluginNotes, route: CompiledRoute): Revision[] =>
  [...new Set(notesFor(notes.revisions, route).flatMap(list => list(route)))].sort().reverse()

/** Builds a host; nothing listens yet. Throws a StartError for a config that cannot be served. */
export async function buildHost(input: HostInput): Promise<Host> {
  const { config, log, directory, processes = 1 } = input
  const http = resolveHttp(config.http)
  const secrets = createSecrets(config.secrets, process.env['MCP_HOST_SECRETS'])
  let address = ''
  const notes = createNotes()
  const revisions = new Map<CompiledRoute, readonly Revision[]>()
  const ownAddress = () => http.publicUrl?.replace(/\/$/, '') ?? address
  const routes = compileRoutes(config, {
    address: ownAddress,
    revisions: route => revisions.get(route) ?? revisionsOf(notes, route),
  })
  const instances = planPlugins(config, input.plugins, routes)
  const provides = providersAmong(instances)
  checkConventions(routes, provides)

  const slots: Slots = {
    changeBus: createMemoryChangeBus(),
    eventStore: createMemoryEventStore(),
    access: openAccess,
    protectedResource: plainResource,
    sessionStore: undefined,
    peers: undefined,
  }
  const changes = createChangeFeed(() => slots.changeBus)
  const toolsets = await loadToolsets(config.toolsets, directory)
  const contributed = (route: CompiledRoute) => notesFor(notes.contributed, route)
  const catalog = createCatalog(toolsets, {
    bus: () => slots.changeBus,
    log,
    faultsOf,
    decidesAccess: provides('access'),
    combinations: () =>
      routes.flatMap(route => route.knownCombinations().map(names => [...names, ...contributed(route)])),
  })
  const leastScopes = createLeastScopes({ routes, catalog, notes, slots })
  const parts: Parts = { config, http, log, routes, catalog, slots, secrets, notes, leastScopes }
  const methods = createMethodTable(handlerSettings(parts))
  const inFlight = createInFlight()

  const varies = (route: CompiledRoute) =>
    config.configureSession !== undefined || route.authorize !== undefined || notesFor(notes.varies, route).length > 0
  const decidesAccess = (route: CompiledRoute) => provides('access', route)
  const sessions: SessionSettings = {
    config,
    catalog,
    viewFor: createViews(catalog),
    varies,
    contributed,
    decidesAccess,
    access: () => slots.access,
  }
  let answer: (call: Call) => Promise<object> = () => Promise.reject(new Error('the host is still starting'))

  const openSession = createSessions(sessions)
  const nodeNumber = randomBytes(4).readUInt32BE()
  const node = nodeNumber.toString(36)
  const bounds = resolveSessions(config.sessions)
  const streams = createSessionStreams({
    node,
    registry: () => registry,
    events: () => slots.eventStore,
    bus: () => slots.changeBus,
    log,
  })
  const registry: SessionRegistry = createSessionRegistry({
    ids: createSessionIds(secrets.keys('session-id'), nodeNumber),
    bounds,
    share({ local, adoptRun }) {
      const { sessionStore: store, peers } = slots
      if (!store || !peers) return undefined
      return createSharedSessions({
        node,
        store,
        peers,
        bounds,
        log,
        local,
        adoptRun,
        receiveOther: streams.receiveFromPeer,
      })
    },
    feed: changes,
    events: () => slots.eventStore,
    log,
    openSession,
  })

  const filled = new Map<keyof Slots, string>()
  await setUpPlugins(instances, notes, {
    log,
    server: { name: config.server.name, version: config.server.version },
    http,
    processes,
    directory,
    redis: config.redis,
    address: ownAddress,
    runtime: catalog.runtime,
    slots,
    filled,
    addMethod: methods.add,
    addDefinition: (toolset, definition: Definition) => catalog.add(toolset, definition),
    itemsOf: route => routes.flatMap(compiled => (compiled === route ? itemsOn(parts, compiled) : [])),
    leastScopes,
    openSession,
    sessions: registry,
    streams,
    node,
    ownKeys: secrets.generated,
    changes,
    answer: call => answer(call),
    inFlight: inFlight.enter,
    readiness: () => checkReadiness(notes, inFlight.draining()),
    keys: secrets.keys,
  })
  for (const route of routes) revisions.set(route, revisionsOf(notes, route))
  checkSharing({ processes, routes, isFilled: slot => filled.has(slot), ownKeys: secrets.generated })
  checkViews(routes, sessions)
  warnOpenDoors(parts)
  warnUntoldScopes(parts, log)
  answer = createDispatch(routes, notes, methods, log)
  if (secrets.generated) log.warn({}, NO_SECRETS)

  const start = async () => {
    // From now on other nodes may say what concerns the sessions here.
    void registry.shared
    for (const task of notes.starting.splice(0)) await task()
  }
  const app = createPipeline(collectEndpoints(notes, routes), http, log)
  const server = createHttpServer(app.callback(), http, {
    sentAhead: ip => log.debug({ ip }, 'closed a connection that sent too many requests ahead'),
    slowReaders: readers => log.warn(readers, 'closed connections whose readers do not read'),
  })

  return {
    get url() {
      return address
    },
    get routes() {
      return routes.map(summarizeRoute)
    },
    runtime: catalog.runtime,
    start,
    inspect(path) {
      address ||= `http://${http.host}:${http.port}`
      return inspectAddress(path, parts)
    },
    async listen() {
      await start()
      await listenOn(server, http)
      address = addressOf(server)
    },
    ...createEnding({
      server,
      keepAliveTimeout: http.keepAliveTimeout,
      inFlight,
      sessions: registry,
      notes,
      isAlone: () => routes.some(keepsSessions) && !(slots.sessionStore && slots.peers),
    }),
  }
}

const NO_SECRETS =
  'no `secrets` in the config and no MCP_HOST_SECRETS: keys were made for this process alone, so the session ids that it ' +
  'signs and the requestState that it seals hold on no other node and not after a restart'
