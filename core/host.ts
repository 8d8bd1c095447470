// Builds a host: plans and sets up plugins, builds services, collects endpoints, and checks the result.

import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { addChallenge, takesBearer } from './access/authorize.ts'
import {
  checkAuthorizeHooks,
  checkPlugins,
  checkServed,
  warnOpenHost,
  warnUnmetPolicies,
  warnUnprotected,
  warnUnserved,
} from './access/check-routes.ts'
import { type InspectedAddress, inspectAddress } from './access/inspect-access.ts'
import { itemsOn, type LeastScopesParts, warnUnsupportedScopes } from './access/least-scopes.ts'
import { type BuiltServices, buildServices, type ServiceParts } from './assembly.ts'
import { checkRegistrations } from './check-registrations.ts'
import type { DeclaredKeys } from './config/declared-keys.ts'
import type { FilledConfig } from './config/define-config.ts'
import { isSecretPath } from './config/explain-problems.ts'
import type { LoadedConfig } from './config/load-config.ts'
import { recordRead as reads } from './config/module-graph.ts'
import { planPlugins } from './config/plan-options.ts'
import type { Problems } from './config/problems.ts'
import { resolveHttp } from './config/resolve-settings.ts'
import type { ConfiguredSecrets } from './config/secrets-file.ts'
import { isSecretAt, schemasAlong } from './config/walk-schema.ts'
import { checkPlaceholders, warnOfValues } from './config/warn-of-values.ts'
import { type Clock, systemClock } from './http/clock.ts'
import { closeIfUnread, createHttpServer, type ServerEvents } from './http/create-server.ts'
import { HostError, StartError } from './http/errors.ts'
import type { ResolvedHttp } from './http/guard.ts'
import { addressOf, listenOn } from './http/port.ts'
import { openStreams } from './http/sse.ts'
import type { HostTls } from './http-tls.ts'
import type { Services } from './internal-host.ts'
import { authenticatorsOn, createIssuerAssigner } from './kernel/authenticators.ts'
import { loadNeededParser } from './kernel/body.ts'
import { collectEndpoints } from './kernel/collect-endpoints.ts'
import type { Plugin } from './kernel/define-plugin.ts'
import type { InternalKernelHost, PluginConfig } from './kernel/kernel-host.ts'
import type { Logger } from './kernel/log.ts'
import { createMetrics } from './kernel/metrics.ts'
import { addOldNames } from './kernel/old-names.ts'
import { createPipeline } from './kernel/pipeline.ts'
import { createProviderLookup, type PluginInstance, type Provides, type SuggestPlugin } from './kernel/plugin-plan.ts'
import { createPseudonyms } from './kernel/pseudonyms.ts'
import { createReadiness } from './kernel/readiness.ts'
import type { Route } from './kernel/route.ts'
import { createSecrets, type Secrets } from './kernel/secrets.ts'
import {
  createKernelHost,
  createKernelRegistrations,
  type KernelRegistrations,
  missingCapability,
  registeredOn,
  runTasks,
  setUpPlugins,
} from './kernel/set-up.ts'
import { createInFlight, createShutdown, type InFlight, type Shutdown } from './kernel/shutdown.ts'
import { createSlots } from './kernel/slots.ts'
import type { Observer } from './mcp/calls/observe.ts'
import type { CatalogItem } from './mcp/definitions/catalog.ts'
import type { Definition, RuntimeHost } from './mcp/definitions/define.ts'
import { reportNameClashes, validDefinitions, warnOfPages } from './mcp/definitions/valid-definitions.ts'
import {
  createMcpPluginHost,
  createMcpRegistrations,
  createRevisions,
  type McpRegistrations,
} from './mcp/mcp-plugin-host.ts'
import type { AccessServices } from './mcp/routes/access-decider.ts'
import { type RouteDetails, type RouteSummary, summarizeRoute } from './mcp/routes/route-summary.ts'
import { type CompiledRoute, compileRoutes, isInternal, sampleParams } from './mcp/routes/routes.ts'
import { loadNeededCompiler } from './mcp/schema/ajv.ts'
import { encodeError } from './mcp/wire/message.ts'
import type { KeptWarnings, Operator, OperatorProgram } from './operator.ts'
import type { Plugin as HostPlugin, PluginHost } from './plugin-host.ts'
import { type ConnectedClient, connectClient } from './sessions/connect-client.ts'
import { checkSharing, isOnlyLocal, keepsSessions, NO_SECRETS } from './sessions/sharing.ts'
import { type DeclaredSlots, defaultSlots, impliedSlots, type Neighbours, type Slots, slotProblem } from './slots.ts'

interface ConnectionParts extends Pick<ServiceParts, 'log' | 'metrics' | 'clock' | 'inFlight'> {
  readonly http: ResolvedHttp
  readonly tls: HostTls | undefined
}

/** The HTTP server of the host, and `callback` for a server of the embedding program. */
function createConnections(
  handle: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
  { http, log, metrics, clock, inFlight, tls }: ConnectionParts,
) {
  const closed = metrics.counter({
    name: 'mcp_host_connections_closed_total',
    help: 'Connections that the host closed, by reason.',
    labels: ['reason'],
  })
  const events: ServerEvents = {
    pipelined(ip) {
      log.debug({ ip }, 'closed a connection that pipelined requests')
      closed(1, { reason: 'pipelined' })
    },
    slowReaders(readers) {
      log.warn({ code: 'MH1309', ...readers }, 'closed connections because their clients do not read')
      closed(readers.connections, { reason: 'slow_reader' })
    },
  }
  const { server, refusePipelined, watch, waiting } = createHttpServer(handle, http, events, tls?.createServer, clock)
  metrics.gauge({ name: 'mcp_host_requests_in_flight', help: 'Requests that are being answered.' }, inFlight.count)
  metrics.gauge({ name: 'mcp_host_streams', help: 'Event streams that are open.' }, openStreams)
  metrics.gauge({ name: 'mcp_host_waiting_bytes', help: 'Bytes of responses that clients have not read yet.' }, waiting)
  return {
    server,
    traffic: () => ({ inFlight: inFlight.count(), streams: openStreams(), waitingBytes: waiting() }),
    callback(hasStarted: () => boolean): ReturnType<Host['callback']> {
      if (http.publicUrl === undefined) {
        throw new StartError('MH1305', 'callback() requires http.publicUrl, because the host does not listen itself', {
          exitCode: 2,
        })
      }
      return async (req, res) => {
        if (!res.socket) return refusePipelined(req, res)
        if (!hasStarted()) return refuseEarly(res, log)
        // An HTTP/2 connection carries many requests, so a slow reader must not end it.
        if (req.httpVersionMajor < 2) {
          watch(req.socket, res)
          closeIfUnread(req, res)
        }
        return handle(req, res)
      }
    },
  }
}

function createStartup(run: () => Promise<void>, { draining }: Pick<InFlight, 'draining'>) {
  let starting: Promise<void> | undefined
  let started = false
  return {
    hasStarted: () => started,
    async start() {
      if (draining()) throw new StartError('MH1306', 'the host is closed; create another one with createHost')
      starting ??= run()
      await starting
      started = true
    },
  }
}

async function refuseEarly(res: ServerResponse, log: Logger) {
  log.warn({ code: 'MH1308' }, 'Request received before startup. Await start() before the first request.')
  const error = new HostError('unavailable', { detail: 'the server is starting' })
  res.writeHead(error.status, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end(encodeError(error))
}

const PRELOAD_DELAY = 100

function preload(log: Logger) {
  const load = async () => {
    try {
      loadNeededCompiler()
      await loadNeededParser()
    } catch (err) {
      log.error(
        { code: 'MH1310', err },
        'a package that parses requests cannot be loaded, so all requests fail: reinstall mcp-host',
      )
    }
  }
  setTimeout(load, PRELOAD_DELAY).unref()
}

/** The result of a reload, as config keys. `MCP_HOST_SECRETS` represents secrets from that variable. */
export interface ReloadReport {
  /** Changed keys that require a restart. If any, the reload applied nothing. */
  readonly restart: readonly string[]
  /** Applied keys. A toolset is listed if its definitions changed. */
  readonly taken: readonly string[]
  /** Number of sessions and `subscriptions/listen` streams of this process that were notified of changed lists. */
  readonly told: number
}

export interface BuiltHost {
  readonly host: Omit<Host, 'reload'>
  readonly parts: HostParts
}

export interface HostParts
  extends Pick<HostInput, 'config' | 'toolsets' | 'log'>,
    Pick<BuiltServices, 'catalog' | 'offered' | 'combinations' | 'review'> {
  readonly instances: readonly PluginInstance[]
  readonly routes: readonly CompiledRoute[]
  readonly server: { name: string; version: string; title: string | undefined }
  readonly onReload: KernelRegistrations['onReload']
  readonly secrets: Secrets & Pick<ConfiguredSecrets, 'isOfFile'>
  readonly tls: HostTls | undefined
}

interface ServedParts extends Pick<HostParts, 'routes' | 'onReload'> {
  readonly services: Pick<BuiltServices, 'slot' | 'offered' | 'viewOf' | 'unrouted'>
  readonly provides: Pick<Provides, 'by'>
}

/** A host: it serves after `listen()`, or through `callback()`. */
export interface Host extends Shutdown {
  /** `http://address:port` once it listens, `https` with `http.tls`. */
  readonly url: string
  readonly routes: readonly RouteSummary[]
  readonly runtime: RuntimeHost
  /** For the CLI, such as `mcp-host lock`. */
  readonly served: ServedParts
  /** Starts the plugins once; `listen` calls it. Rejects with a StartError after `close`. */
  start(): Promise<void>
  /** Evaluates access at a path without a request; undefined if the path is not served. */
  inspect(path: string): InspectedAddress | undefined
  /** Resolves once requests are accepted. Rejects with a StartError, for example if the port is in use. */
  listen(): Promise<void>
  /**
   * Applies a newer version of the config, completely or not at all. Sessions, streams and running calls continue, and clients
   * with changed lists are notified. If a change requires a restart, nothing is applied and the report names the key. Rejects
   * with a StartError for an invalid config. Reloads run one at a time.
   */
  reload(loaded: LoadedConfig): Promise<ReloadReport>
  /**
   * Handles requests of your own server, in place of `listen`. Call `start` first (earlier requests get 503) and `close` at the
   * end. Requires `http.publicUrl`, including any path prefix that your server removes from `req.url`. The body must be unread.
   * The promise resolves when the response is sent or its stream is open.
   */
  callback(): (req: IncomingMessage, res: ServerResponse) => Promise<void>
  /** Stops the port and its connections from keeping the process alive. */
  unref(): void
}

/** See `InternalKernelHost.inEveryProcess`. Names are unique per plugin. */
export type InEveryProcess = InternalKernelHost['inEveryProcess']

/** Options of `createHost`. */
export interface CreateHostOptions {
  /** The base of relative config paths. Default: the working directory. */
  directory?: string
  /** Default: JSON lines on stderr. */
  log?: Logger
  /** See `PluginHost.config.purpose`. Default `serve`; an `inspect` host cannot listen. */
  purpose?: PluginConfig['purpose']
  /** Number of processes that serve this config. Default 1. With more, per-process state is a StartError. */
  processes?: number
  inEveryProcess?: InEveryProcess
  /** Connects the processes. Default: none. */
  neighbours?: Neighbours
  /** Checks each version of the host before it serves. A rejection stops startup or the reload. */
  accept?: (host: Pick<Host, 'served'>) => Promise<void>
  observe?: Observer
  /** Time and timers, for tests. Default: the system clock. */
  clock?: Clock
}

export type RunOptions = Pick<
  CreateHostOptions,
  'purpose' | 'processes' | 'inEveryProcess' | 'neighbours' | 'observe' | 'clock'
>

export interface HostInput extends RunOptions, Pick<ServiceParts, 'outbound' | 'problemsOf'> {
  readonly readerOf: (toolKey: string) => string
  /** Members of `ctx` that plugins declare. */
  readonly context: DeclaredKeys['context']
  readonly config: FilledConfig
  readonly secrets: ConfiguredSecrets
  readonly plugins: ReadonlyMap<string, Plugin<object>>
  readonly allPluginsFound: boolean
  /** Plugins with invalid options, already reported. They are not set up. */
  readonly hasInvalidOptions?: ((plugin: string) => boolean) | undefined
  readonly toolsets: ReadonlyMap<string, readonly Definition[]>
  readonly problems: Problems
  /** Errors of built-in plugins are logged without the plugin's name. */
  readonly isBuiltIn: (plugin: Plugin<object>) => boolean
  readonly directory: string
  readonly log: Logger
  readonly lock?: PluginConfig['lock'] | undefined
  readonly suggest: SuggestPlugin
  readonly program?: ((host: Host) => OperatorProgram) | undefined
  readonly warnings?: KeptWarnings | undefined
  readonly schema: object
}

export const LOCK_NAME = 'mcp.lock.json'

/** Builds a host that does not listen yet. Throws a ConfigError with all problems, after the plugins have closed. */
export async function buildHost(input: HostInput): Promise<BuiltHost> {
  const registrations = createKernelRegistrations()
  try {
    return await assemble(input, registrations)
  } catch (error) {
    for (const close of registrations.onClose.splice(0).reverse()) await close()
    throw error
  }
}

async function assemble(input: HostInput, registrations: KernelRegistrations): Promise<BuiltHost> {
  const { config, log, directory, plugins, toolsets, suggest, problems, allPluginsFound } = input
  const { purpose = 'serve', processes = 1, inEveryProcess = inThisProcess, neighbours, clock = systemClock } = input
  const { report } = problems
  const http = resolveHttp(config.http)
  const { list, isOfFile } = input.secrets
  const secrets = { ...createSecrets(list, process.env['MCP_HOST_SECRETS'], report), isOfFile }
  const { tls: tlsConfig } = config.http
  const late: LateParts = { listening: '', isBuilt: false }
  const address = () => http.publicUrl?.replace(/\/$/, '') ?? late.listening
  const mcp = createMcpRegistrations(reads, input.context, config.toolsets)
  const routes = compileRoutes(config, { address, revisions: createRevisions(mcp, () => late.isBuilt) }, report)
  const validToolsets = validDefinitions(toolsets, input.problemsOf, report)
  const before = problems.count()
  // If a plugin is missing, unmet needs cannot be determined.
  const instances = planPlugins(config, plugins, routes, {
    suggest,
    report: allPluginsFound ? report : () => undefined,
  })
  const isPlanned = allPluginsFound && problems.count() === before
  const provides = createProviderLookup(instances)
  if (allPluginsFound) checkPlugins(routes, provides, suggest, report)

  const node = randomBytes(4).readUInt32BE().toString(36)
  const builtIns: ReadonlyArray<HostPlugin<object>> = [...plugins.values()].filter(input.isBuiltIn)
  const ownSlots: DeclaredSlots = Object.assign({}, ...builtIns.map(plugin => plugin.slots))
  const defaults = defaultSlots(node, { log, clock }, neighbours, ownSlots)
  const slots = createSlots(defaults, {
    findProblem: (slot, service) => slotProblem(defaults, slot, service),
    impliedServices: impliedSlots({ log, clock }, ownSlots),
  })
  const inFlight = createInFlight()
  const metrics = createMetrics()
  const tlsParts = { directory, log, metrics, report }
  const tls =
    tlsConfig && purpose !== 'stdio'
      ? await (await import('./http-tls.ts')).prepareTls({ ...config.http, tls: tlsConfig }, tlsParts)
      : undefined
  const { name, version, title } = config.server
  const server = { name, version, title }
  const { lock = { file: join(directory, LOCK_NAME), isFrozen: false } } = input
  const hostFor = createPluginHosts(input, registrations, mcp, late, {
    config: { directory, lock, http, keys: secrets.keys, processes, purpose, server },
    ownKeys: secrets.generated,
    countTogether: neighbours?.count,
    checkReadiness: createReadiness(registrations.readiness, inFlight.draining, log, clock),
    // A route with its own peers plugin has its own node name.
    nodeOf: ({ general, routes: [own] }) =>
      general || !own || !provides('peers', own) ? node : `${node}r${routes.map(({ path }) => path).indexOf(own.path)}`,
    section: name => Reflect.get(config, name),
    ...{ clock, inEveryProcess, log, metrics, address, slots, report },
  })
  const planned = problems.count()
  const validInstances = instances.filter(instance => !input.hasInvalidOptions?.(instance.name))
  await setUpPlugins(validInstances, hostFor, report)
  const isSetUp = problems.count() === planned && validInstances.length === instances.length
  if (isSetUp) checkAuthorizeHooks(routes, registrations, report)
  slots.seal()
  // A plugin that failed could have provided the unknown toolsets.
  const toolsetsKnown = isSetUp || (allPluginsFound && !provides('toolsets'))
  const hasToolsets = toolsets.size + mcp.toolsets.size > 0
  for (const route of routes) {
    route.chooseToolsets(mcp.toolsets.keys(), toolsetsKnown && hasToolsets ? report : () => undefined)
  }
  const isAnyNamed = routes.some(({ path }) => [config.routes[path]?.toolsets ?? []].flat().length > 0)
  if (toolsetsKnown && !hasToolsets && isAnyNamed) report(new StartError('MH1204', NO_TOOLSETS, { at: ['toolsets'] }))
  const sharedOn = (route: Route) => isSetUp && slots.get('sessionStore', route).shared
  // A failed plugin could have provided the slot.
  const isFilled = (slot: keyof Slots, route: Route) =>
    slots.isFilled(slot, route) || (!isSetUp && provides(slot, route))
  const hasNeighbours = neighbours !== undefined
  // A plugin for shared sessions reports missing secrets itself.
  const ownKeys = secrets.generated && (isSetUp || !provides('sessionStore'))
  if (isPlanned) checkSharing({ processes, routes, isFilled, hasNeighbours, sharedOn, ownKeys, suggest, report })
  if (!isSetUp || !allPluginsFound) {
    reportNameClashes(routes, validToolsets, report)
    problems.assertNone()
  }

  if (input.observe) mcp.onFinish.push({ instance: { ...PROGRAM, routes }, value: input.observe })
  const fixForKey: ServiceParts['fixForKey'] = (key, path) => {
    const plugin = input.readerOf(key)
    const isOn = instances.some(
      ({ name, routes: own }) => name === plugin && (path === undefined || own.some(route => route.path === path)),
    )
    if (isOn) return `plugins.${plugin} declares it and must call host.toolKey('${key}', ...) in setup`
    return `enable ${plugin}${path === undefined ? '' : ' there'}`
  }
  const parts = {
    routes,
    toolsets: validToolsets,
    slots,
    secrets,
    provides,
    registrations,
    mcp,
    inFlight,
    node,
    metrics,
  }
  const services = await problems.attempt(() => buildServices({ ...input, ...parts, clock, fixForKey, report }))
  if (!services) return problems.assertNone() as never
  late.services = services
  const declared = problems.count()
  await services.complete(toolsets.values())
  const { inspected, leastScopes, challengesOn, limits, catalog, offered, combinations, review } = services
  const { served, notFound } = collectEndpoints(registrations, routes, addChallenge(services), report)
  late.isBuilt = true
  const hasMetadata = (route: Route) => slots.isFilled('protectedResource', route) || !takesBearer(challengesOn(route))
  checkServed(routes, served, hasMetadata, provides, suggest, report)
  if (purpose !== 'stdio') warnUnmetPolicies(routes, provides, suggest, report)
  if (problems.count() === declared) await runTasks(registrations.onReady, report)
  const watch = mcp.onFinish.length > 0 ? services.watchRequest : undefined
  const isTimed = mcp.onFinish.some(({ value }) => value.startTimeline !== undefined)
  const app = await problems.attempt(() =>
    createPipeline(served, notFound, { http, log, encode: encodeError, report, isTimed, watch }),
  )
  checkPlaceholders({ config, schema: input.schema, instances, report })
  problems.assertNone('last')
  if (!app) throw new Error('the pipeline failed without an error')
  if (purpose !== 'stdio') warnOpenHost(inspected, http, log)
  warnUnprotected(inspected, log, report)
  warnUnsupportedScopes(inspected, report)
  warnOfPages(routes, services.viewOf, report)
  if (purpose === 'inspect') warnOfValues({ config, instances, plugins, report })
  if (purpose === 'inspect' && !config.configureSession) {
    warnUnserved(routes, toolsets, mcp.toolsets, name => isInternal(config.toolsets[name]), report)
  }
  if (secrets.generated) log.warn({ code: 'MH1031' }, NO_SECRETS)
  const startup = createStartup(async () => {
    if (purpose !== 'inspect') services.startSessions()
    for (const task of registrations.onStart) await problems.withLocation(task)
    catalog.open()
  }, inFlight)
  const connections = createConnections(app.callback(), { http, log, metrics, clock, inFlight, tls })
  const namesOn = (route: Route) => authenticatorsOn(registrations, route).map(({ plugin }) => plugin)
  const facts = { ...inspected, leastScopes, mcp }
  const host: BuiltHost['host'] = {
    get url() {
      return late.listening
    },
    get routes() {
      return routes.map(route =>
        summarizeRoute(route, { ...summaryFactsOf(facts, route), authenticators: namesOn(route) }),
      )
    },
    runtime: services.runtime,
    served: { routes, services, provides, onReload: registrations.onReload },
    start: startup.start,
    inspect(path) {
      late.listening ||= `http${tlsConfig ? 's' : ''}://${http.host}:${http.port}`
      return inspectAddress(path, { ...facts, challengesOn, limits, registrations })
    },
    async listen() {
      if (purpose === 'inspect') throw new StartError('MH1307', INSPECT_ONLY)
      await startup.start()
      await listenOn(connections.server, http)
      late.listening = addressOf(connections.server)
      preload(log)
    },
    callback: () => connections.callback(startup.hasStarted),
    unref: () => void connections.server.unref().on('connection', socket => socket.unref()),
    ...createShutdown({
      server: connections.server,
      inFlight,
      sessions: services.sessions,
      registrations,
      isOnlyProcess: () =>
        routes.some(route => keepsSessions(route) && isOnlyLocal(slots.get('sessionStore', route), processes)),
    }),
  }
  const { onReload } = registrations
  const built = { config, instances, routes, toolsets, server, secrets, log, tls }
  late.operator = createOperator(host, { ...built, offered }, input, connections.traffic, namesOn)
  return { host, parts: { ...built, onReload, catalog, offered, combinations, review } }
}

function createOperator(
  host: BuiltHost['host'],
  { routes, instances, offered, secrets, tls }: Pick<HostParts, 'routes' | 'instances' | 'offered' | 'secrets' | 'tls'>,
  { schema, warnings, program }: HostInput,
  traffic: () => Operator['traffic'],
  authenticatorsOf: (route: Route) => readonly string[],
): Operator {
  return {
    get routes() {
      return host.routes.map((summary, index) => {
        const route = routes[index] as CompiledRoute
        const transports = host.served.provides.by('transport', route)
        return { ...summary, listen: route.listen, transports, authenticators: authenticatorsOf(route) }
      })
    },
    inspect: path => host.inspect(path),
    get config() {
      return offered.now
    },
    isSecret: path =>
      isSecretPath(schema, path) ||
      instances.some(({ at, plugin }) => {
        const rest = path.slice(at.length)
        if (rest.length === 0 || at.some((key, index) => key !== path[index])) return false
        // A plugin that does not declare an option does not declare it secret either.
        return isSecretAt(plugin.options, rest) || schemasAlong(plugin.options, rest).at(-1)?.length === 0
      }),
    get traffic() {
      return traffic()
    },
    get url() {
      return host.url
    },
    plugins: instances.map(({ name, general, routes }) => ({ name, general, routes: routes.map(({ path }) => path) })),
    pseudonymOf: createPseudonyms(secrets.keys('records')).user,
    createServer: tls?.createServer,
    warnings,
    program: program?.(host as Host),
  }
}

/** Values that exist only after setup. */
interface LateParts {
  listening: string
  isBuilt: boolean
  services?: BuiltServices
  operator?: Operator
}

/** Creates the hosts of plugins. Members that need services throw before all plugins are set up. */
function createPluginHosts(
  { isBuiltIn }: HostInput,
  registrations: KernelRegistrations,
  mcp: McpRegistrations,
  late: LateParts,
  parts: Parameters<typeof createKernelHost<Slots>>[2],
) {
  const oldNamesUsed = new Set<string>()
  return (instance: PluginInstance) => {
    const { name, plugin, issuer } = instance
    const assignIssuer = createIssuerAssigner(name, issuer)
    const services = (member: string) => {
      const isTransport = plugin.provides?.includes('transport')
      if (member === 'connect' && !isTransport) throw missingCapability(instance, member, 'transport')
      if (late.services) return late.services
      const what = `plugins.${name}: host.${member} is not available in setup; use it in onReady, in onStart or later`
      throw new StartError('MH1521', what, { exitCode: 2 })
    }
    const base = { ...createKernelHost<Slots>(instance, registrations, parts), ...createMcpPluginHost(instance, mcp) }
    const host = Object.defineProperties(
      checkRegistrations(base, () => late.isBuilt, isBuiltIn(plugin)),
      {
        services: { get: () => services('services') },
        runtime: { get: () => services('runtime').runtime },
        connect: {
          value(...[caller, line]: Parameters<PluginHost['connect']>): ConnectedClient {
            const user = caller.user && assignIssuer(caller.user)
            return connectClient({ ...services('connect'), name, log: base.log }, { ...caller, user }, line)
          },
        },
      },
    )
    if (isBuiltIn(plugin)) Object.defineProperty(host, 'operator', { get: () => late.operator })
    else addOldNames(host, oldNamesUsed)
    return host
  }
}

const inThisProcess: InEveryProcess = (_name, answer) => async () => [await answer()]

/** Represents the embedding program in observer registrations. */
const PROGRAM: Omit<PluginInstance, 'routes'> = {
  ...{ name: 'mcp-host', at: ['plugins'], options: {}, general: true, issuer: '', order: -1 },
  plugin: { options: { type: 'object', additionalProperties: false, properties: {} }, setup: () => undefined },
}

function summaryFactsOf(
  parts: LeastScopesParts &
    Pick<Services, 'slot'> &
    Pick<AccessServices, 'leastScopes'> & { readonly mcp: Pick<McpRegistrations, 'unlisted'> },
  route: CompiledRoute,
): Omit<RouteDetails, 'authenticators'> {
  const params = sampleParams(route)
  // Withheld tools are not counted, because calls to them fail.
  const isWithheld = ({ kind, key }: CatalogItem) =>
    kind === 'tools' && registeredOn(parts.mcp.unlisted, route).some(hides => typeof hides(key, route) === 'string')
  const items = itemsOn(parts, route, route.toolsetsFor(params)).filter(item => !isWithheld(item))
  const { authorize: rule } = route
  const [access, resource] = [parts.slot('access', route), parts.slot('protectedResource', route)]
  const anonymous = access.audienceOf(undefined, route)
  const restricted = items.filter(item => anonymous.denialOf(item))
  // A login requests the first of these lists that has scopes.
  const ofRule = rule === undefined ? undefined : access.authorize(rule, undefined, route)?.scopes
  const requested = [ofRule, parts.leastScopes(route, params), resource.scopesOf(route)]
  const scopes = requested.find(list => list && list.length > 0) ?? []
  const login = rule ? access.audienceOf({ subject: '', scopes, roles: [], claims: {} }, route) : anonymous
  const available = items.filter(item => !login.denialOf(item))
  const hasLoginMetadata = resource.metadataUrlOf(route, params) !== undefined
  const sources = route.toolsets.flatMap(name => {
    const { describe } = parts.catalog.sourceOf(name) ?? {}
    const withheld = parts.catalog.withheldIn(name)
    const isEmpty = parts.catalog.items(name).length === 0 && withheld.size === 0
    return describe ? [{ toolset: name, state: describe(), isEmpty, withheld }] : []
  })
  const { issuer, isDevelopment = false } = parts.slot('authorizationServer', route)
  const issuers = resource.serversOf?.(route) ?? [issuer() ?? []].flat()
  return { items, restricted, available, hasLoginMetadata, logins: { issuers, isDevelopment }, sources }
}

const NO_TOOLSETS = 'missing; add toolsets with tools, resources or prompts, or a plugin that provides toolsets'
const INSPECT_ONLY = "this host was made with `purpose: 'inspect'`, for inspection only; create another host to serve"
