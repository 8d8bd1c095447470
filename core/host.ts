// A host's life: plan the plugins, set them up, build the services, let the plugins define what is served, listen, end.

import { checkConventions, checkServed } from './access/check-routes.ts'
import { inspectAddress } from './access/inspect-access.ts'
import { itemsOn, type LeastScopesFacts, warnUntoldScopes } from './access/least-scopes.ts'
import { warnOpenDoors } from './access/warn-open-doors.ts'
import { buildServices, createNode, type ServiceParts } from './assembly.ts'
import { faultsOf } from './config/check-definition.ts'
import type { FilledConfig } from './config/define-config.ts'
import { noteRead as reads } from './config/files-read.ts'
import { warnOfNearMiss } from './config/near-miss.ts'
import { planPlugins } from './config/plan-options.ts'
import type { Problems } from './config/problems.ts'
import { resolveHttp } from './config/resolve-settings.ts'
import { declaring } from './declaring.ts'
import { defaultSlots } from './default-slots.ts'
import type { GivenSecrets } from './given-secrets.ts'
import { createLife, loadAhead, refuseEarly } from './host-life.ts'
import { type Clock, systemClock } from './http/clock.ts'
import { createHttpServer } from './http/create-server.ts'
import { StartError } from './http/errors.ts'
import { inOwnTurn } from './http/in-turn.ts'
import { addressOf, listenOn } from './http/listen.ts'
import { watchReaders } from './http/slow-readers.ts'
import { createConnectionNews, offerHttpFigures } from './http-figures.ts'
import type { prepareTls } from './http-tls.ts'
import { collectEndpoints } from './kernel/collect-endpoints.ts'
import type { Plugin } from './kernel/define-plugin.ts'
import { createEnding } from './kernel/ending.ts'
import { createFigures } from './kernel/figures.ts'
import { createInFlight } from './kernel/in-flight.ts'
import type { KernelHost } from './kernel/kernel-host.ts'
import type { Logger } from './kernel/log.ts'
import { createPipeline } from './kernel/pipeline.ts'
import type { PluginInstance } from './kernel/plugin-plan.ts'
import { providersAmong, type SuggestPlugin } from './kernel/plugin-plan.ts'
import type { Route } from './kernel/route.ts'
import { createSecrets } from './kernel/secrets.ts'
import {
  checkDefined,
  createKernelHost,
  createNotes,
  definePlugins,
  type KernelNotes,
  setUpPlugins,
} from './kernel/set-up.ts'
import { createSlots } from './kernel/slots.ts'
import { createAuthorHost, createAuthorNotes, createRevisions } from './mcp/author-host.ts'
import type { Definition } from './mcp/define.ts'
import type { Observer } from './mcp/observe.ts'
import { type RouteFacts, summarizeRoute } from './mcp/route-summary.ts'
import { type CompiledRoute, compileRoutes, sampleParams } from './mcp/routes.ts'
import { soundDefinitions } from './mcp/sound-definitions.ts'
import { encodeError } from './mcp/wire.ts'
import { namingFailures } from './name-failures.ts'
import type { Services } from './plugin-host.ts'
import { createReadiness } from './readiness.ts'
import type { BuiltHost } from './running-host.ts'
import type { Neighbours } from './sessions/neighbours.ts'
import { checkSharing, isServedHereAlone, keepsSessions, NO_SECRETS } from './sessions/sharing.ts'
import { type Slots, slotFault } from './slots.ts'

export type { BuiltHost, Host, HostParts } from './running-host.ts'

/** See `KernelHost.inEveryProcess`; names are told apart by who asks. */
export type InEveryProcess = KernelHost['inEveryProcess']

export interface HostInput extends Pick<ServiceParts, 'guardedFetch'> {
  readonly config: FilledConfig
  readonly secrets: GivenSecrets
  /** Every plugin that the config names, and that was found. */
  readonly plugins: ReadonlyMap<string, Plugin<object>>
  /** Whether all of them were. */
  readonly isWhole: boolean
  readonly toolsets: ReadonlyMap<string, readonly Definition[]>
  /** What is wrong already, and what is found now. */
  readonly problems: Problems
  /** Whether a plugin is one of ours: what others throw is named in the log. */
  readonly isBuiltIn: (plugin: Plugin<object>) => boolean
  /** The config's paths are relative to it. */
  readonly directory: string
  readonly log: Logger
  /** Default `serve`. */
  readonly purpose?: KernelHost['purpose'] | undefined
  /** For errors that tell what to switch on. */
  readonly suggest: SuggestPlugin
  /** How many processes serve this config behind one address. Default 1. */
  readonly processes?: number | undefined
  /** Asks all of them. Default: this one alone. */
  readonly inEveryProcess?: InEveryProcess | undefined
  /** The way between them. Default: there is none. */
  readonly neighbours?: Neighbours | undefined
  /** Of the program that serves, beside those of plugins. */
  readonly observe?: Observer | undefined
  readonly clock?: Clock | undefined
}

/**
 * Builds a host; nothing listens yet. Throws a ConfigError that says all that is wrong, as far as one thing can be known
 * beside the other; what plugins opened is closed then.
 */
export async function buildHost(input: HostInput): Promise<BuiltHost> {
  const notes = createNotes<Services>()
  try {
    return await assemble(input, notes)
  } catch (error) {
    for (const close of notes.closing.splice(0).reverse()) await close()
    throw error
  }
}

async function assemble(input: HostInput, notes: KernelNotes<Services>): Promise<BuiltHost> {
  const { config, log, directory, plugins, toolsets, suggest, isBuiltIn, problems } = input
  const { purpose = 'serve', processes = 1, inEveryProcess = here, neighbours, clock = systemClock } = input
  const { report } = problems
  const http = resolveHttp(config.http)
  const { list, isOfFile } = input.secrets
  const secrets = { ...createSecrets(list, process.env['MCP_HOST_SECRETS'], report), isOfFile }
  let listening = ''
  const { tls: secured } = config.http
  const address = () => http.publicUrl?.replace(/\/$/, '') ?? listening
  const author = createAuthorNotes(reads)
  let settled = false
  const routes = compileRoutes(config, { address, revisions: createRevisions(author, () => settled) }, report)
  const sound = soundDefinitions(toolsets, faultsOf, report)
  // Of a plugin that was not found nobody knows what it would provide.
  if (!input.isWhole) problems.assertNone()
  const before = problems.count()
  const instances = planPlugins(config, plugins, routes, { suggest, report })
  const isPlanned = problems.count() === before
  const provides = providersAmong(instances)
  checkConventions(routes, provides, suggest, report)

  const node = createNode()
  const defaults = defaultSlots(node.name, clock, neighbours)
  const slots = createSlots(defaults, (slot, service) => slotFault(defaults, slot, service))
  const inFlight = createInFlight()
  const readiness = createReadiness(notes.ready, inFlight.draining, log)
  const section = (name: string): unknown => Reflect.get(config, name)
  // Nobody reads what is for another: where a route has plugins of its own, this node has a name of its own there too.
  const nodeOf = ({ general, routes: [own] }: PluginInstance) =>
    general || !own || !provides('peers', own)
      ? node.name
      : `${node.name}r${routes.map(({ path }) => path).indexOf(own.path)}`
  const figures = createFigures()
  const tlsParts = { directory, log, figures, report }
  const tls = secured && purpose !== 'stdio' ? await loadTls({ ...config.http, tls: secured }, tlsParts) : undefined
  const among = { purpose, processes, inEveryProcess, figures, clock }
  const facts = { ...among, log, http, directory, address, slots, readiness, nodeOf, section, report }
  const keys = { keys: secrets.keys, ownKeys: secrets.generated }
  const server = { name: config.server.name, version: config.server.version }
  const planned = problems.count()
  const hostFor = (instance: PluginInstance) => {
    const kernelHost = createKernelHost<Slots, Services>(instance, notes, { ...facts, ...keys })
    const declared = declaring({ ...kernelHost, ...createAuthorHost(instance, author, server) }, () => settled)
    return isBuiltIn(instance.plugin) ? declared : namingFailures(declared)
  }
  await setUpPlugins(instances, hostFor, report)
  const isSetUp = problems.count() === planned
  slots.seal()
  const sharedOn = (route: Route) => isSetUp && slots.on('sessionStore', route).shared
  // What a plugin with a mistake did not fill in, it will.
  const isFilled = (slot: keyof Slots, route: Route) =>
    slots.isFilled(slot, route) || (!isSetUp && provides(slot, route))
  const isCarried = neighbours !== undefined
  // What shares sessions says itself that it has no keys.
  const ownKeys = secrets.generated && (isSetUp || !provides('sessionStore'))
  if (isPlanned) checkSharing({ processes, routes, isFilled, isCarried, sharedOn, ownKeys, suggest, report })
  // What it would have filled in is missing everywhere.
  if (!isSetUp) problems.assertNone()

  const program = { name: 'mcp-host', at: ['plugins'], plugin: PROGRAM, options: {}, routes, general: true }
  if (input.observe) author.observers.push({ instance: program, value: input.observe })
  const parts = {
    ...among,
    config,
    log,
    suggest,
    routes,
    toolsets: sound,
    slots,
    secrets,
    notes,
    author,
    provides,
    inFlight,
    node,
  }
  const services = await problems.attempt(() => buildServices({ ...parts, guardedFetch: input.guardedFetch, report }))
  if (!services) return problems.assertNone() as never
  const declared = problems.count()
  await definePlugins(notes, services, report)
  if (problems.count() > declared) problems.assertNone()
  await services.complete()
  const { inspected, leastScopes, limits, sessions, runtime } = services
  const { served, nowhere } = collectEndpoints(notes, routes, report)
  settled = true
  const isServed = (route: Route) => served.some(place => place.route === route && place.kind === 'R')
  const isDescribed = (route: Route) => slots.isFilled('protectedResource', route)
  checkServed({ routes, provides, endpoints: served, isServed, isDescribed, suggest, report })
  // What is missing because of another mistake would be told twice.
  if (problems.count() === 0) await checkDefined(notes, report)
  // Where nobody observes it costs nothing.
  const begun = author.observers.length > 0 ? services.watchRequest : undefined
  const app = await problems.attempt(() =>
    createPipeline(served, nowhere, { http, log, encode: encodeError, report, begun }),
  )
  problems.assertNone('last')
  if (!app) throw new Error('what stops the pipeline was not told')
  warnOpenDoors({ ...inspected, http, purpose, log, report })
  warnUntoldScopes(inspected, log)
  if (secrets.generated) log.warn({}, NO_SECRETS)
  if (secrets.generated) warnOfNearMiss('MCP_HOST_SECRETS', process.env, report)
  const life = createLife(async () => {
    if (purpose !== 'inspect') services.startSessions()
    for (const task of notes.starting) await problems.placed(task)
  }, inFlight)
  const handle = app.callback()
  const news = createConnectionNews(log, figures)
  const { server: httpServer, waiting } = createHttpServer(handle, http, news, tls?.make, clock)
  offerHttpFigures(figures, inFlight, waiting)

  const host: BuiltHost['host'] = {
    get url() {
      return listening
    },
    get routes() {
      return routes.map(route => summarizeRoute(route, factsOf(inspected, route)))
    },
    runtime,
    surface: async () => (await import('./surface/read-surface.ts')).readSurface({ routes, services, provides }),
    start: life.start,
    inspect(path) {
      listening ||= `http${secured ? 's' : ''}://${http.host}:${http.port}`
      return inspectAddress(path, { ...inspected, leastScopes, limits, notes, author })
    },
    async listen() {
      if (purpose === 'inspect') throw new StartError(ONLY_ASKED)
      await life.start()
      await listenOn(httpServer, http)
      listening = addressOf(httpServer)
      tls?.watch()
      loadAhead(log)
    },
    callback() {
      if (http.publicUrl === undefined) {
        throw new StartError('callback() needs http.publicUrl: only you know where you serve this host', {
          exitCode: 2,
        })
      }
      const { watch } = watchReaders({ timeout: http.writeTimeout, clock }, news.slowReaders)
      return inOwnTurn((req, res) => {
        if (!life.hasStarted()) return refuseEarly(res, log)
        // A connection of HTTP/2 is many requests': one slow reader must not end them all.
        if (req.httpVersionMajor < 2) watch(req.socket, res)
        return handle(req, res)
      })
    },
    unref: () => void httpServer.unref().on('connection', socket => socket.unref()),
    ...createEnding({
      server: httpServer,
      keepAliveTimeout: http.keepAliveTimeout,
      inFlight,
      sessions,
      notes,
      isAlone: () =>
        routes.some(route => keepsSessions(route) && isServedHereAlone(slots.on('sessionStore', route), processes)),
    }),
  }
  const { catalog, offered, combinations, review } = services
  const { reconfigure } = notes
  const built = { config, instances, routes, toolsets, server, secrets, log, tls }
  return { host, parts: { ...built, reconfigure, catalog, offered, combinations, review } }
}

/** What speaks TLS is loaded for those alone who want it. */
const loadTls = async (...given: Parameters<typeof prepareTls>) => (await import('./http-tls.ts')).prepareTls(...given)

/** Where one process serves. */
const here: InEveryProcess = (_name, answer) => async () => [await answer()]

/** The program that serves, in the place of a plugin. */
const PROGRAM: Plugin<object> = {
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup: () => undefined,
}

/** What anybody may use there comes first; a guarded route says what it takes only to those who came in. */
function factsOf(parts: LeastScopesFacts, route: CompiledRoute): RouteFacts {
  const params = sampleParams(route)
  const items = itemsOn(parts, route, route.toolsetsFor(params))
  const anybody = parts.slot('access', route).audienceOf(undefined, route)
  const [open, others] = [true, false].map(wanted => items.filter(item => !anybody.denialOf(item) === wanted))
  const tellsLogin = parts.slot('protectedResource', route).metadataUrlOf(route, params) !== undefined
  // What an open route asks a token for is not for everybody to try.
  return { items: [...(open ?? []), ...(route.authorize === undefined ? [] : (others ?? []))], tellsLogin }
}

const ONLY_ASKED = "this host was made with `purpose: 'inspect'`, to be asked and not to listen; make one to serve"
