// Builds a host's services from the filled slots, before plugins define endpoints with them (host.ts).
import { createItemAuthorizer, createRouteAuthorizer } from './access/authorize.ts'
import { createCallerWatch } from './access/caller-watch.ts'
import { createLeastScopes, itemsOn } from './access/least-scopes.ts'
import type { FilledConfig } from './config/define-config.ts'
import { resolveSessions, resolveTools } from './config/resolve-settings.ts'
import type { Clock } from './http/clock.ts'
import { type Report, StartError } from './http/errors.ts'
import type { Outbound, Services } from './internal-host.ts'
import { authenticatorsOn } from './kernel/authenticators.ts'
import type { Logger } from './kernel/log.ts'
import type { Metrics } from './kernel/metrics.ts'
import type { createProviderLookup, SuggestPlugin } from './kernel/plugin-plan.ts'
import { createPseudonyms } from './kernel/pseudonyms.ts'
import type { Route } from './kernel/route.ts'
import type { Secrets } from './kernel/secrets.ts'
import { type KernelRegistrations, registeredOn } from './kernel/set-up.ts'
import type { InFlight } from './kernel/shutdown.ts'
import type { SlotTable } from './kernel/slots.ts'
import { createCall } from './mcp/calls/call.ts'
import type { HandlerSettings } from './mcp/calls/context.ts'
import { watchOverdue } from './mcp/calls/handler-outcome.ts'
import { createRefusalWatch, createRequestWatch } from './mcp/calls/observe.ts'
import { createToolLimits } from './mcp/calls/tool-limits.ts'
import { type Combination, createCatalog, type ToolItem } from './mcp/definitions/catalog.ts'
import type { ProblemsOf } from './mcp/definitions/catalog-item.ts'
import type { Definition } from './mcp/definitions/define.ts'
import { createCallFailureLog, createDispatch } from './mcp/dispatch.ts'
import { addContributions, contributedTo, createUnlisting, type McpRegistrations } from './mcp/mcp-plugin-host.ts'
import { createMethodTable } from './mcp/methods/index.ts'
import type { AccessServices } from './mcp/routes/access-decider.ts'
import {
  addressCombinations,
  checkCombination,
  checkUnrouted,
  createChosenCombinations,
  findUnrouted,
} from './mcp/routes/combinations.ts'
import type { LiveConfig } from './mcp/routes/configure-session.ts'
import { createOffers, plainView, prepareViews } from './mcp/routes/offer.ts'
import type { CompiledRoute, McpRoute } from './mcp/routes/routes.ts'
import { createViews } from './mcp/routes/view.ts'
import { createPeers } from './sessions/peers.ts'
import { createSessionIds, type Owner } from './sessions/session-id.ts'
import { createSessionsByRoute, type RouteStores } from './sessions/sessions-by-route.ts'
import type { Slots } from './slots.ts'
import { createMemoryBus } from './store/memory-bus.ts'

export interface ServiceParts {
  readonly config: FilledConfig
  readonly log: Logger
  readonly clock: Clock
  readonly suggest: SuggestPlugin
  readonly routes: readonly CompiledRoute[]
  readonly toolsets: ReadonlyMap<string, readonly Definition[]>
  readonly slots: SlotTable<Slots>
  readonly secrets: Secrets
  readonly mcp: McpRegistrations
  readonly provides: ReturnType<typeof createProviderLookup>
  readonly inFlight: InFlight
  readonly node: string
  readonly metrics: Metrics
  readonly report: Report
  readonly outbound: Outbound
  readonly registrations: Pick<KernelRegistrations, 'authenticators'>
  readonly problemsOf: ProblemsOf
  readonly fixForKey: (toolKey: string, path?: string) => string
}

export type BuiltServices = ReturnType<typeof buildServices>

export function buildServices(parts: ServiceParts) {
  const { config, log, clock, routes, slots, secrets, mcp, provides, inFlight, node, metrics, report } = parts
  const contributed = (route: CompiledRoute) => contributedTo(mcp, route)
  const addresses = () => addressCombinations(routes, contributed)
  const check = (combination: Combination) => void checkCombination(offers, combination)
  const { callTimeout, fetchTimeout, rules } = resolveTools(config.tools)
  const limits = createToolLimits({ rules, callTimeout, metrics, clock })
  const catalog = createCatalog(parts.toolsets, {
    buses: slots.all('changeBus', routes),
    log,
    problemsOf: parts.problemsOf,
    limitProblemOf: limits.faultOf,
    decidesAccess: provides('access'),
    readsKey: mcp.toolKeys.reads,
    fixForKey: parts.fixForKey,
    suggest: parts.suggest,
    combinations: () => [...addresses(), ...chosen.list()],
    check,
    report,
  })
  const inspected = { routes, catalog, contributed, slot: slots.get }
  // `configureSession` can add any toolset to any route.
  const reachableOn = (route: CompiledRoute) =>
    itemsOn(inspected, route, [...route.toolsets, ...(offered.now.configureSession ? catalog.names() : [])])
  const access: AccessServices = {
    slot: slots.get,
    leastScopes: createLeastScopes(inspected),
    challengesOn: route => authenticatorsOn(parts.registrations, route).map(({ challenge }) => challenge),
  }
  const authorize = createRouteAuthorizer(log, access)
  const { watchCaller, recheckCallers } = createCallerWatch(authorize, clock)
  const tracerOn = (route: Route) => slots.get('tracer', route)
  const logFailure = createCallFailureLog(log, tracerOn)
  const hasStaticItems = () =>
    offered.now.configureSession === undefined && ![...mcp.toolsets.values()].some(({ isLate }) => isLate)
  /** `configureSession` can add an isolated tool to any route. */
  function checkIsolation() {
    for (const route of routes) {
      if (slots.isFilled('isolation', route)) continue
      const tool = reachableOn(route).find(item => limits.of(item).isolate)
      if (!tool) continue
      const what = `"${tool.key}" has \`isolate\`, which requires a plugin: enable ${parts.suggest('isolation')}`
      report(new StartError('MH1112', what, { at: ['routes', route.path] }))
    }
  }
  const settings: HandlerSettings = {
    limits,
    clock,
    log,
    logFailure,
    fetchTimeout,
    overdue: watchOverdue(log, metrics, clock),
    isolationOn: route => slots.get('isolation', route),
    openRuntime: catalog.openRuntime,
    headersFor: call => tracerOn(call.offer.route).headersFor(call),
    contextOn: mcp.context.on,
    stateKeys: secrets.keys('request-state'),
    toolKeys: mcp.toolKeys,
    authorize: createItemAuthorizer(access),
  }
  const methods = createMethodTable(settings)
  const ids = createSessionIds(secrets.keys('session-id'))
  const isSessionOf = (id: string, owner: Owner) => ids.verify(id)?.isOwnedBy(owner) ?? false
  const recording = { log, clock, has: methods.has, isSessionOf, pseudonyms: createPseudonyms(secrets.keys('records')) }
  const offered: LiveConfig = { now: config, reloads: 0 }
  const offers = {
    log,
    config: offered,
    catalog,
    views: createViews(catalog),
    authorize,
    varies: (route: CompiledRoute) =>
      offered.now.configureSession !== undefined ||
      route.authorize !== undefined ||
      registeredOn(mcp.varies, route).length > 0,
    contributed,
    extensions: (route: CompiledRoute) => mcp.extensions.on(route).settings,
    keys: mcp.toolKeys.on,
    keyChecks: { fixForKey: parts.fixForKey, isIsolated: (tool: ToolItem) => limits.of(tool).isolate !== undefined },
    isHidden: createUnlisting(mcp),
    decidesAccess: (route: CompiledRoute) => provides('access', route),
    accessOn: (route: CompiledRoute) => slots.get('access', route),
  }
  const chosen = createChosenCombinations(offers)
  const makeOffer = createOffers({ ...offers, chosen })
  const stores = new Map(
    routes.map(route => {
      const routeStores: RouteStores = {
        sessionStore: slots.get('sessionStore', route),
        peers: slots.get('peers', route),
        eventStore: slots.get('eventStore', route),
        changeBus: slots.get('changeBus', route),
      }
      return [route as McpRoute, routeStores] as const
    }),
  )
  const { start, ...sessions } = createSessionsByRoute({
    routes,
    storesOn: route => stores.get(route) as RouteStores,
    noPeers: createPeers(createMemoryBus(node)),
    limits: resolveSessions(config.sessions),
    ids,
    requestIdKeys: secrets.keys('question-id'),
    log,
    clock,
    makeOffer,
    authorize,
    metrics,
  })
  const services: Services = {
    ...access,
    ...sessions,
    ...parts.outbound,
    runtime: catalog.runtime,
    reachableItemsOf: route => reachableOn(route as CompiledRoute),
    itemsOf: route => routes.flatMap(compiled => (compiled === route ? itemsOn(inspected, compiled) : [])),
    itemsIn: catalog.items,
    sourceOf: toolset => mcp.toolsets.get(toolset),
    hasStaticItems,
    authorize,
    watchCaller,
    makeOffer,
    createCall,
    extensionsOn: mcp.extensions.on,
    dispatch: createDispatch(mcp, methods, { ...recording, tracerOn, logFailure }),
    reportRefused: createRefusalWatch(mcp.onFinish, recording),
    trackRequest: inFlight.enter,
  }
  return {
    ...services,
    inspected,
    limits,
    offered,
    catalog,
    combinations: addresses,
    startSessions: start,
    watchRequest: createRequestWatch(mcp.onFinish, recording),
    viewOf: (route: CompiledRoute, toolsets: readonly string[]) => plainView(offers, route, toolsets),
    unrouted: () => findUnrouted(routes, offers),
    /** `defined`: the toolsets of the config, including definitions that were refused. */
    async complete(defined: Iterable<readonly Definition[]>) {
      await addContributions(mcp, catalog, methods, report)
      const items = routes.flatMap(reachableOn).filter(({ kind }) => kind === 'tools')
      const names = [...items.map(({ key }) => key), ...[...defined].flat().map(({ name }) => name)]
      limits.check(names, hasStaticItems(), report)
      checkIsolation()
      prepareViews(routes, offers, report)
      checkUnrouted(routes, offers, report)
    },
    /**
     * Records the lists of connected clients. The returned function ends streams of callers without access, notifies clients with
     * changed lists, and returns their number.
     */
    review() {
      const notifyChanges = sessions.review()
      return () => {
        // Callers without access must not be notified.
        recheckCallers()
        return notifyChanges()
      }
    },
  }
}
