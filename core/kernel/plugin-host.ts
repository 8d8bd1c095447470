// What a plugin gets in `setup`: it writes down what the plugin wants, by hook point. The host (core/host.ts) builds
// the pipeline from these notes once every plugin is set up.

import type { RedisSettings } from '../config/define-config.ts'
import type { Call, Next, OpenSession, RequestFacts } from '../mcp/call.ts'
import { createCall } from '../mcp/call.ts'
import type { CatalogItem } from '../mcp/catalog.ts'
import type { Definition, RuntimeHost } from '../mcp/define.ts'
import type { Extensions } from '../mcp/extension.ts'
import type { Method } from '../mcp/methods/index.ts'
import type { Revision } from '../mcp/revisions.ts'
import type { ChangeFeed } from '../sessions/change-feed.ts'
import type { SessionRegistry } from '../sessions/registry.ts'
import type { SessionStreams } from '../sessions/session-streams.ts'
import type {
  CrossOrigin,
  Endpoint,
  EndpointPlace,
  HostMiddleware,
  PluginHost,
  Readiness,
  Route,
} from './define-plugin.ts'
import { errorText, StartError } from './errors.ts'
import type { ResolvedHttp } from './http-settings.ts'
import type { Logger } from './log.ts'
import { HOOK_POINTS, type HookPoint } from './pipeline.ts'
import type { PluginInstance } from './plugin-plan.ts'
import type { CompiledRoute } from './routes.ts'
import type { Slots } from './slots.ts'

/** One thing that an instance of a plugin registered; it holds for that instance's routes. */
interface Note<Value> {
  readonly instance: PluginInstance
  readonly value: Value
}

/** Everything that the plugins of one host registered, in the order of set-up. */
export interface PluginNotes {
  readonly middleware: Record<HookPoint, Note<HostMiddleware>[]>
  readonly around: Note<(call: Call, next: Next) => Promise<object>>[]
  readonly crossOrigin: Note<(route: Route) => CrossOrigin | undefined>[]
  readonly endpoints: Note<{ path: string; endpoint: Endpoint } & EndpointPlace>[]
  readonly routeEndpoints: Note<{ suffix: string; define: (route: Route) => Endpoint | undefined }>[]
  readonly revisions: Note<(route: Route) => readonly Revision[]>[]
  readonly varies: Note<true>[]
  /** Names of toolsets that the catalog keeps for what plugins contribute. */
  readonly contributed: Note<string>[]
  readonly starting: Array<() => void | Promise<void>>
  readonly closing: Array<() => void | Promise<void>>
  readonly draining: Array<() => void>
  readonly ready: Map<string, () => boolean | string | Promise<boolean | string>>
}

export const createNotes = (): PluginNotes => ({
  middleware: Object.fromEntries(HOOK_POINTS.map(point => [point, []])) as unknown as PluginNotes['middleware'],
  around: [],
  crossOrigin: [],
  endpoints: [],
  routeEndpoints: [],
  revisions: [],
  varies: [],
  contributed: [],
  starting: [],
  closing: [],
  draining: [],
  ready: new Map(),
})

/** The values of the notes that hold on a route. */
export const notesFor = <Value>(notes: readonly Note<Value>[], route: CompiledRoute): Value[] =>
  notes.filter(({ instance }) => instance.routes.includes(route)).map(({ value }) => value)

/** What the host itself does for its plugins. */
export interface HostServices {
  readonly log: Logger
  readonly server: { readonly name: string; readonly version: string }
  readonly http: ResolvedHttp
  readonly processes: number
  readonly directory: string
  readonly redis: RedisSettings | undefined
  /** The host's own URL, without a slash at its end. */
  address(): string
  readonly runtime: RuntimeHost
  readonly slots: Slots
  readonly filled: Map<keyof Slots, string>
  addMethod(name: string, method: Method, routes: readonly CompiledRoute[]): void
  readonly extensions: Extensions
  addDefinition(toolset: string, definition: Definition): void
  itemsOf(route: Route): readonly CatalogItem[]
  readonly leastScopes: PluginHost['leastScopes']
  openSession(facts: RequestFacts): Promise<OpenSession>
  answer(call: Call): Promise<object>
  readonly sessions: SessionRegistry
  readonly streams: SessionStreams
  readonly node: string
  readonly ownKeys: boolean
  readonly changes: ChangeFeed
  inFlight(cancel: (reason: Error) => void): () => void
  readiness(): Promise<Readiness>
  keys(use: string): readonly Buffer[]
}

/** Runs a plugin's part of the start; what it throws stops the start, with the plugin's name. */
async function startPlugin(name: string, part: () => void | Promise<void>): Promise<void> {
  try {
    await part()
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    throw new StartError(`plugins.${name} failed to start: ${errorText(cause)}`, { cause })
  }
}

/** Runs a plugin's part of the end: one that fails is logged, and the others close all the same. */
async function closePlugin(log: Logger, part: () => void | Promise<void>): Promise<void> {
  try {
    await part()
  } catch (err) {
    log.error({ err }, 'failed to close')
  }
}

/** The host as one instance of a plugin sees it. */
function createPluginHost(instance: PluginInstance, notes: PluginNotes, services: HostServices): PluginHost {
  const {
    log,
    server,
    http,
    processes,
    directory,
    redis,
    runtime,
    slots,
    filled,
    openSession,
    answer,
    inFlight,
    readiness,
    keys,
  } = services
  const note = <Value>(list: Note<Value>[], value: Value) => void list.push({ instance, value })
  const hook = (point: HookPoint) => (middleware: HostMiddleware) => note(notes.middleware[point], middleware)
  const own = log.child({ plugin: instance.name })
  const clash = (what: string) => new StartError(`plugins.${instance.name}: ${what}`, { exitCode: 2 })
  return {
    name: instance.name,
    log: own,
    server,
    http,
    processes,
    directory,
    redis,
    url: path => `${services.address()}${path}`,
    routes: instance.routes,
    runtime,
    guard: hook('guard'),
    crossOrigin: policyOf => note(notes.crossOrigin, policyOf),
    edge: hook('edge'),
    identify: hook('identify'),
    admit: hook('admit'),
    around: wrap => note(notes.around, wrap),
    endpoint: (path, endpoint, place) => note(notes.endpoints, { ...place, path, endpoint }),
    routeEndpoint: (suffix, define) => note(notes.routeEndpoints, { suffix, define }),
    revisions: list => note(notes.revisions, list),
    method(name, answerCall) {
      services.addMethod(name, { answer: answerCall }, instance.routes)
    },
    extension: (id, extension) =>
      services.extensions.add({ plugin: instance.name, id, extension, routes: instance.routes }),
    extensionsOn: services.extensions.on,
    contribute(definitions) {
      const toolset = `/plugins.${instance.name} on ${instance.routes.map(({ path }) => path).join(', ')}`
      for (const definition of definitions) services.addDefinition(toolset, definition)
      if (!notes.contributed.some(({ value }) => value === toolset)) note(notes.contributed, toolset)
    },
    itemsOf: services.itemsOf,
    leastScopes: services.leastScopes,
    variesByCaller: () => note(notes.varies, true),
    fill(slot, service) {
      const other = filled.get(slot)
      if (other !== undefined && other !== instance.name) throw clash(`${other} already provides the ${slot}`)
      filled.set(slot, instance.name)
      slots[slot] = service
    },
    slot: name => slots[name],
    starting: task => void notes.starting.push(() => startPlugin(instance.name, task)),
    closing: task => void notes.closing.push(() => closePlugin(own, task)),
    draining: task => void notes.draining.push(task),
    ready: (name, check) => void notes.ready.set(name, check),
    readiness,
    sessions: services.sessions,
    changes: services.changes,
    streams: services.streams,
    node: services.node,
    ownKeys: services.ownKeys,
    openSession,
    createCall,
    answer,
    inFlight,
    keys,
  }
}

/** Sets the plugins up, one after the other: each finds what those before it filled in. */
export async function setUpPlugins(instances: readonly PluginInstance[], notes: PluginNotes, services: HostServices) {
  for (const instance of instances) {
    const host = createPluginHost(instance, notes, services)
    await startPlugin(instance.name, () => instance.plugin.setup(host, instance.options))
  }
}

/** Whether the host accepts requests and every named condition holds; a check that throws does not. */
export async function checkReadiness({ ready }: PluginNotes, draining: boolean): Promise<Readiness> {
  const checks: Record<string, boolean> = { accepting: !draining }
  const reasons: Record<string, string> = {}
  for (const [name, check] of ready) {
    try {
      const holds = await check()
      checks[name] = holds === true
      if (typeof holds === 'string') reasons[name] = holds
    } catch {
      checks[name] = false
    }
  }
  const isReady = Object.values(checks).every(Boolean)
  return { ready: isReady, checks, ...(Object.keys(reasons).length > 0 && { reasons }) }
}
