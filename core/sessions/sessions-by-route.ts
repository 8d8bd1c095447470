// The sessions of all routes: those whose routes keep them in one store, with one way to other nodes, have one registry. Most
// hosts have one in all; a route whose plugins have options of their own, or are off, has another.

import type { Clock } from '../http/clock.ts'
import { StartError } from '../http/errors.ts'
import type { Figures } from '../kernel/figures.ts'
import type { Logger } from '../kernel/log.ts'
import type { AdmitCaller, Offer, RequestFacts } from '../mcp/call.ts'
import type { ChangeBus } from '../mcp/change-bus.ts'
import type { McpRoute } from '../mcp/routes.ts'
import { type ChangeFeed, createChangeFeed } from './change-feed.ts'
import type { EventStore } from './event-store.ts'
import { createQuestionIds } from './nodes/question-ids.ts'
import type { Peers } from './peers.ts'
import { createSessionRegistry, type SessionRegistry } from './registry.ts'
import { createRunningCalls } from './running-calls.ts'
import type { Session } from './session.ts'
import type { SessionBounds } from './session-bounds.ts'
import { createSessionFigures } from './session-figures.ts'
import type { SessionIds } from './session-id.ts'
import type { SessionStore } from './session-store.ts'
import { createSessionStreams, type SessionStreams } from './session-streams.ts'
import type { ThisNode } from './this-node.ts'

/** What keeps the sessions of one route. */
export interface RouteStores {
  readonly sessionStore: SessionStore
  readonly peers: Peers
  readonly eventStore: EventStore
  readonly changeBus: ChangeBus
}

export interface SessionsSettings {
  readonly routes: readonly McpRoute[]
  readonly storesOn: (route: McpRoute) => RouteStores
  /** Where there are no other nodes. */
  readonly nobody: Peers
  readonly bounds: SessionBounds
  readonly ids: SessionIds
  /** 32 bytes each; the first signs, all verify. */
  readonly questionKeys: readonly Buffer[]
  readonly log: Logger
  readonly clock: Clock
  readonly makeOffer: (facts: RequestFacts) => Offer | Promise<Offer>
  readonly admit: AdmitCaller
  readonly figures: Figures
}

export interface SessionsByRoute {
  readonly sessions: SessionRegistry
  readonly streams: SessionStreams
  /** What brings changes to the clients of a route. */
  changesOn(route: McpRoute): ChangeFeed
  /** As a feed's, of all of them. */
  review(): () => number
  /** From now on other nodes are heard. */
  start(): void
}

interface Group {
  readonly sessionStore: SessionStore
  readonly peers: Peers
  readonly routes: McpRoute[]
}

/** Throws a StartError where the store of a route names this node otherwise than other nodes know it. */
function checkNames({ path }: McpRoute, { sessionStore, peers }: RouteStores) {
  if (!sessionStore.shared || sessionStore.node === peers.node) return
  const why = 'its sessions are kept for every node, but by another name than other nodes know this one by'
  const fix =
    'give the plugins that keep sessions and that carry messages between nodes the same options there, or neither'
  throw new StartError(`${why}; ${fix}`, { at: ['routes', path] })
}

function groupRoutes({ routes, storesOn, nobody }: SessionsSettings): Group[] {
  const groups: Group[] = []
  for (const route of routes) {
    const stores = storesOn(route)
    checkNames(route, stores)
    const { sessionStore } = stores
    // Sessions of this process alone concern no other node.
    const peers = sessionStore.shared ? stores.peers : nobody
    const group = groups.find(other => other.sessionStore === sessionStore && other.peers === peers)
    if (group) group.routes.push(route)
    else groups.push({ sessionStore, peers, routes: [route] })
  }
  return groups
}

function createFeeds({ storesOn, log }: SessionsSettings) {
  const feeds = new Map<ChangeBus, ChangeFeed>()
  return {
    on(route: McpRoute): ChangeFeed {
      const { changeBus } = storesOn(route)
      const feed = feeds.get(changeBus) ?? createChangeFeed(changeBus, log)
      feeds.set(changeBus, feed)
      return feed
    },
    subscribers: () => [...feeds.values()].reduce((sum, { size }) => sum + size, 0),
    review() {
      const reviews = [...feeds.values()].map(feed => feed.review())
      return () => reviews.reduce((sum, tell) => sum + tell(), 0)
    },
  }
}

/** One registry that asks that of the route. */
function joinRegistries(
  registries: readonly SessionRegistry[],
  on: (route: McpRoute) => SessionRegistry,
  bounds: SessionBounds,
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
    async close(reason, patience) {
      await Promise.all(registries.map(registry => registry.close(reason, patience)))
    },
    get count() {
      return registries.reduce((sum, { count }) => sum + count, 0)
    },
    calls: createRunningCalls(bounds),
  }
}

const joinStreams = (on: (route: McpRoute) => SessionStreams): SessionStreams => ({
  open: (session, requests) => on(session.offer.route).open(session, requests),
  openStandalone: session => on(session.offer.route).openStandalone(session),
  resume: (session, place) => on(session.offer.route).resume(session, place),
  forward: (session, message) => on(session.offer.route).forward(session, message),
  receive: (transport, route, take) => on(route).receive(transport, route, take),
})

const SUBSCRIBERS = {
  name: 'mcp_host_subscribers',
  help: 'Sessions and streams of subscriptions/listen at this node that are told of changes.',
}

/** Throws a StartError where what keeps the sessions of a route does not go together. */
export function createSessionsByRoute(settings: SessionsSettings): SessionsByRoute {
  const { storesOn, bounds, ids, log, clock, makeOffer, admit } = settings
  const feeds = createFeeds(settings)
  const feedOn = feeds.on
  const sessionFigures = createSessionFigures(settings.figures, ids)
  settings.figures.gauge(SUBSCRIBERS, feeds.subscribers)
  const paths = settings.routes.map(({ path }) => path)
  const built = groupRoutes(settings).map(({ sessionStore, peers, routes }) => {
    const node: ThisNode = {
      name: sessionStore.node,
      store: sessionStore,
      peers,
      questionIds: createQuestionIds(settings.questionKeys, sessionStore.node),
      events: (session: Session) => storesOn(session.offer.route).eventStore,
      bus: (session: Session) => storesOn(session.offer.route).changeBus,
      bounds,
      log,
      clock,
      figures: sessionFigures,
      sessions: new Map(),
    }
    sessionFigures.watch(node.name, node.sessions)
    const { registry, start } = createSessionRegistry({ node, ids, paths, feedOn, makeOffer, admit })
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
  const isOne = only !== undefined && others.length === 0
  return {
    sessions: isOne
      ? only.registry
      : joinRegistries(
          built.map(({ registry }) => registry),
          route => on(route).registry,
          bounds,
        ),
    streams: isOne ? only.streams : joinStreams(route => on(route).streams),
    changesOn: feedOn,
    review: feeds.review,
    start() {
      for (const { start } of built) start()
    },
  }
}
