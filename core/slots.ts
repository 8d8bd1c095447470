// The slots of a host: services that plugins can replace for their routes.

import { type AuthorizationServer, noAuthorizationServer } from './access/authorization-server.ts'
import { noTokenBinding, openAccess, plainResource } from './access/authorize.ts'
import { describeKind } from './config/explain-problems.ts'
import type { Clock } from './http/clock.ts'
import type { CountTogether } from './kernel/kernel-host.ts'
import type { Logger } from './kernel/log.ts'
import { type Isolation, noIsolation } from './mcp/calls/isolation.ts'
import { type CallTracer, NO_TRACER } from './mcp/calls/observe.ts'
import { type ChangeBus, createChangeBus } from './mcp/definitions/change-bus.ts'
import type { AccessDecider, ProtectedResource, TokenBinding } from './mcp/routes/access-decider.ts'
import { createSessionStore } from './sessions/create-session-store.ts'
import type { EventStore } from './sessions/event-store.ts'
import { createEventStore, type StreamLimits } from './sessions/event-store.ts'
import { createMemoryEventStore } from './sessions/memory-event-store.ts'
import { createPeers, type Peers } from './sessions/peers.ts'
import type { LocalSessions, SessionStore } from './sessions/session-store.ts'
import type { Bus } from './store/bus.ts'
import { createMemoryBus } from './store/memory-bus.ts'
import { createMemoryStore } from './store/memory-store.ts'
import type { Store } from './store/store.ts'

/** The worker processes of one config (`--workers`). Methods reject with `unavailable` if the primary process does not respond. */
export interface Neighbours {
  bus(node: string): Bus
  readonly count: CountTogether
}

interface PartsHost {
  readonly log: Logger
  readonly clock: Clock
}

/** Slots of a built-in plugin, each with a function that creates the service. `isDefault`: no plugin provides the store. */
export type DeclaredSlots = {
  readonly [Name in keyof BuiltInSlots]?: (
    store: Slots['store'],
    host: PartsHost,
    isDefault: boolean,
  ) => BuiltInSlots[Name]
}

const createInStore = (store: Slots['store'], host: PartsHost, declared: DeclaredSlots, isDefault = false) =>
  Object.fromEntries(
    Object.entries(declared).map(([name, serviceIn]) => [name, serviceIn(store, host, isDefault)]),
  ) as unknown as BuiltInSlots

/** The default services. `node`: the name of this node. `neighbours`: other processes of this machine. */
export function defaultSlots(
  node: string,
  host: PartsHost,
  neighbours: Neighbours | undefined,
  declared: DeclaredSlots,
): Slots {
  const bus = neighbours?.bus(node) ?? createMemoryBus(node)
  const { now } = host.clock
  const store = createMemoryStore({ now })
  return {
    store,
    access: openAccess,
    protectedResource: plainResource,
    tokenBinding: noTokenBinding,
    eventStore: createMemoryEventStore({}, now),
    changeBus: createChangeBus(bus),
    sessionStore: { node, shared: false },
    peers: createPeers(bus),
    isolation: noIsolation,
    tracer: NO_TRACER,
    authorizationServer: noAuthorizationServer,
    ...createInStore(store, host, declared, true),
  }
}

const DEFAULT_STREAM_LIMITS: StreamLimits = { ttl: 3_600_000, maxEvents: 10_000, maxBytes: 4 * 1_048_576 }

export interface StoreLimits {
  /** Default: one hour, 10,000 events, 4 MiB. */
  readonly streams?: StreamLimits
  /** Bytes of the store. Default: no limit. */
  readonly maxSize?: number
}

export const impliedSlots =
  (host: PartsHost, declared: DeclaredSlots) =>
  ({ store }: Partial<Slots>, get: <Name extends keyof Slots>(slot: Name) => Slots[Name]): Partial<Slots> => {
    if (!store) return {}
    const { bus, shared, limits: { streams = DEFAULT_STREAM_LIMITS, maxSize } = {} } = store
    return {
      ...(shared && {
        sessionStore: createSessionStore(store, { node: bus?.node ?? get('peers').node, log: host.log, maxSize }),
      }),
      eventStore: createEventStore(store, streams),
      ...createInStore(store, host, declared),
      ...(bus && { changeBus: createChangeBus(bus), peers: createPeers(bus) }),
    }
  }

/** Slots of built-in plugins, which extend this type. */
export interface BuiltInSlots extends Record<never, never> {}

/** The services that plugins can replace. Default stores are in memory and limited. */
export interface Slots extends BuiltInSlots {
  /** Sessions, event streams and the slots of built-in plugins; with its `bus`, also changes and messages between nodes. */
  store: Store & { readonly limits?: StoreLimits }
  /** Access to items. Default: open; `authorize` supports scopes and roles. */
  access: AccessDecider
  /** Protected resource metadata of a route. Default: each URL is a resource. */
  protectedResource: ProtectedResource
  /** Checks proofs of bound tokens. Default: none. */
  tokenBinding: TokenBinding
  /** Events of resumable streams. */
  eventStore: EventStore
  /** Announces changes to all nodes. Default: this process only. */
  changeBus: ChangeBus
  /** Session records. Default: the registry of this process. */
  sessionStore: SessionStore | LocalSessions
  /** Traces calls. Default: none. */
  tracer: CallTracer
  /** Runs tools with `isolate`. Default: none, which is a startup error for such tools. */
  isolation: Isolation
  /** Other nodes that serve the same sessions. Default: none. */
  peers: Peers
  /** The authorization server of this host. Default: none. */
  authorizationServer: AuthorizationServer
}

/** The services that third-party plugins provide. */
export type PublishedSlots = Pick<Slots, 'access'> & { store: Store }

const PUBLISHED: ReadonlyArray<keyof PublishedSlots> = ['access', 'store']

const OPTIONAL = new Set(['scopesToEnter', 'dump'])

export function slotProblem(defaults: Slots, slot: string, service: unknown): string | undefined {
  const defaultService: object | undefined = Object.hasOwn(defaults, slot) ? defaults[slot as keyof Slots] : undefined
  if (!defaultService) return `there is no slot "${slot}"; a plugin can provide: ${PUBLISHED.join(', ')}`
  const has = (of: unknown, name: string) => of != null && typeof Reflect.get(Object(of), name) === 'function'
  const missing = Object.keys(defaultService).filter(
    name => has(defaultService, name) && !OPTIONAL.has(name) && !has(service, name),
  )
  if (missing.length === 0) return undefined
  return `its value for the slot ${slot} is ${service == null ? String(service) : describeKind(service)} without the methods ${missing.join(', ')}`
}
