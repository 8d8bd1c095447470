// Groups routes with the same session store and peers into one session registry.

import { StartError } from '../http/errors.ts'
import { getOrCreate } from '../http/get-or-create.ts'
import type { Metrics } from '../kernel/metrics.ts'
import type { ChangeBus } from '../mcp/definitions/change-bus.ts'
import type { McpRoute } from '../mcp/routes/routes.ts'
import { type ChangeFeed, createChangeFeed, createWatchCounter } from './change-feed.ts'
import type { EventStore } from './event-store.ts'
import type { Peers } from './peers.ts'
import { createRequestIdSeries } from './pending-requests.ts'
import { createSessionRegistry, type RegistrySettings, type SessionRegistry } from './registry.ts'
import { createRunningCalls } from './running-calls.ts'
import type { Session, SessionMetrics, ThisNode } from './session.ts'
import type { SessionIds } from './session-id.ts'
import type { LocalSessions, SessionLimits, SessionStore } from './session-store.ts'
import { createSessionStreams, type SessionStreams } from './session-streams.ts'

export interface RouteStores {
  readonly sessionStore: SessionStore | LocalSessions
  readonly peers: Peers
  readonly eventStore: EventStore
  readonly changeBus: ChangeBus
}

interface SessionsSettings
  extends Pick<ThisNode, 'limits' | 'log' | 'clock'>,
    Pick<RegistrySettings, 'ids' | 'makeOffer' | 'authorize'> {
  readonly routes: readonly McpRoute[]
  readonly storesOn: (route: McpRoute) => RouteStores
  readonly noPeers: Peers
  /** Keys of 32 bytes; the first signs, all verify. */
  readonly requestIdKeys: readonly Buffer[]
  readonly metrics: Metrics
}

type Group = Pick<RouteStores, 'sessionStore' | 'peers'> & { readonly routes: McpRoute[] }

/** Throws a StartError if a route's session store and peers have different names for this node. */
function groupRoutes({ routes, storesOn, noPeers }: SessionsSettings): Group[] {
  const groups: Group[] = []
  for (const route of routes) {
    const { sessionStore, peers: others } = storesOn(route)
    if (sessionStore.shared && sessionStore.node !== others.node) {
      const why = 'its session store and its message bus use different node names'
      const fix = 'set the same options for the session store and the message bus of this route, or none'
      throw new StartError('MH1401', `${why}; ${fix}`, { at: ['routes', route.path] })
    }
    const peers = sessionStore.shared ? others : noPeers
    const group = groups.find(other => other.sessionStore === sessionStore && other.peers === peers)
    if (group) group.routes.push(route)
    else groups.push({ sessionStore, peers, routes: [route] })
  }
  return groups
}

function joinRegistries(
  registries: readonly SessionRegistry[],
  on: (route: McpRoute) => SessionRegistry,
  limits: SessionLimits,
): SessionRegistry {
  return {
    open: (facts, transport) => on(facts.route).open(facts, transport),
    find: (id, caller, transport, requests) => on(caller.route).find(id, caller, transport, requests),
    end: (session, reason) => on(session.offer.route).end(session, reason),
    get released() {
      return registries.some(({ released }) => released)
    },
    release(retry) {
      for (const registry of registries) registry.release(retry)
    },
    async close(reason, timeout) {
      await Promise.all(registries.map(registry => registry.close(reason, timeout)))
    },
    get count() {
      return registries.reduce((sum, { count }) => sum + count, 0)
    },
    list: () => registries.flatMap(registry => [...registry.list()]),
    calls: createRunningCalls(limits),
  }
}

const joinStreams = (on: (route: McpRoute) => SessionStreams): SessionStreams => ({
  open: (session, requests) => on(session.offer.route).open(session, requests),
  openStandalone: session => on(session.offer.route).openStandalone(session),
  resume: (session, place) => on(session.offer.route).resume(session, place),
  forward: (session, message) => on(session.offer.route).forward(session, message),
  receive: (transport, route, take) => on(route).receive(transport, route, take),
})

export function createSessionsByRoute(settings: SessionsSettings) {
  const { routes, storesOn, limits, ids, log, clock, makeOffer, authorize, metrics, requestIdKeys } = settings
  const feeds = new Map<ChangeBus, ChangeFeed>()
  const watching = createWatchCounter()
  function feedOn(route: McpRoute): ChangeFeed {
    const { changeBus } = storesOn(route)
    return getOrCreate(feeds, changeBus, () => createChangeFeed(changeBus, log, watching.note))
  }
  const subscribers = {
    name: 'mcp_host_subscribers',
    help: 'Sessions and streams of subscriptions/listen at this node that are notified of changes.',
  }
  metrics.gauge(subscribers, () => [...feeds.values()].reduce((sum, { size }) => sum + size, 0))
  const sessionMetrics = createSessionMetrics(metrics, ids)
  const paths = routes.map(({ path }) => path)
  const built = groupRoutes(settings).map(({ sessionStore, peers, routes }) => {
    const node: ThisNode = {
      name: sessionStore.node,
      store: sessionStore.shared ? sessionStore : undefined,
      peers,
      requestIds: createRequestIdSeries(requestIdKeys, sessionStore.node),
      events: session => storesOn(session.offer.route).eventStore,
      bus: session => storesOn(session.offer.route).changeBus,
      limits,
      log,
      clock,
      metrics: sessionMetrics,
      sessions: new Map(),
    }
    sessionMetrics.watch(node.name, node.sessions)
    const { registry, start } = createSessionRegistry({ node, ids, paths, feedOn, makeOffer, authorize })
    const streams = createSessionStreams({ node, registry })
    return { routes, registry, streams, start: () => start(streams.receiveFromPeer) }
  })
  const byRoute = new Map(built.flatMap(one => one.routes.map(route => [route, one] as const)))
  const on = (route: McpRoute) => {
    const found = byRoute.get(route)
    if (!found) throw new Error(`${route.path} is no route of this host`)
    return found
  }
  const [only, ...others] = built
  const single = others.length === 0 ? only : undefined
  const registries = built.map(({ registry }) => registry)
  return {
    sessions: single?.registry ?? joinRegistries(registries, route => on(route).registry, limits),
    streams: single?.streams ?? joinStreams(route => on(route).streams),
    changesOn: feedOn,
    /** `listener` receives the first and the last watcher of a resource URI on this node. */
    onWatch: watching.onWatch,
    review() {
      const reviews = [...feeds.values()].map(feed => feed.review())
      return () => reviews.reduce((sum, notify) => sum + notify(), 0)
    },
    start() {
      for (const { start } of built) start()
    },
  }
}

const revisionOf = ({ revision }: Session) => revision ?? 'none'

function countSessions(node: string, sessions: ReadonlyMap<string, Session>) {
  type Labels = { route: string; protocol_version: string; transport: string }
  const counts = new Map<string, [number, Labels]>()
  for (const session of sessions.values()) {
    if (session.home !== node) continue
    const { offer, transport } = session
    const labels = { route: offer.route.path, protocol_version: revisionOf(session), transport }
    const key = Object.values(labels).join('\n')
    const known = counts.get(key)
    if (known) known[0]++
    else counts.set(key, [1, labels])
  }
  return counts.values()
}

function createSessionMetrics(metrics: Metrics, ids: SessionIds): SessionMetrics {
  const opened = metrics.counter({
    name: 'mcp_host_sessions_opened_total',
    help: 'Sessions that were opened at this node.',
    labels: ['route', 'transport'],
  })
  const evicted = metrics.counter({
    name: 'mcp_host_sessions_evicted_total',
    help: 'Idle sessions that were ended because their number exceeded sessions.maxIdle or the capacity of the store.',
  })
  const lived = metrics.histogram({
    name: 'mcp_server_session_duration_seconds',
    help: 'From the opening of a session to its end.',
    labels: ['mcp_protocol_version'],
  })
  const current = {
    name: 'mcp_host_sessions',
    help: 'Sessions that belong to this node.',
    labels: ['route', 'protocol_version', 'transport'],
  }
  return {
    watch: (node, sessions) => metrics.gauge(current, () => countSessions(node, sessions)),
    opened: ({ offer, transport }) => opened(1, { route: offer.route.path, transport }),
    ended(session) {
      const facts = ids.verify(session.id)
      const seconds = facts && Math.max(0, Date.now() - facts.createdAt) / 1_000
      if (seconds !== undefined) lived(seconds, { mcp_protocol_version: revisionOf(session) })
    },
    evicted,
  }
}
