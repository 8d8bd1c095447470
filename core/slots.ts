// The slots of a host: the services that plugins may replace, route by route. The table itself is the kernel's.

import { noTokenBinding, openAccess, plainResource } from './access/authorize.ts'
import type { GrantStore } from './access/grant-store.ts'
import { type AuthorizationServer, noAuthorizationServer } from './access/grant-store.ts'
import type { Clock } from './http/clock.ts'
import type { AccessDecider, ProtectedResource, TokenBinding } from './mcp/access-decider.ts'
import { type ChangeBus, createMemoryChangeBus } from './mcp/change-bus.ts'
import { noUpstreamTokens, type UpstreamTokens } from './mcp/context.ts'
import { type Isolation, noIsolation } from './mcp/isolation.ts'
import { type CallTracer, NO_TRACER } from './mcp/observe.ts'
import type { EventStore } from './sessions/event-store.ts'
import { createMemoryEventStore } from './sessions/memory-event-store.ts'
import { createMemorySessionStore } from './sessions/memory-session-store.ts'
import type { Neighbours } from './sessions/neighbours.ts'
import { createNeighbourBus } from './sessions/neighbours.ts'
import type { Peers } from './sessions/peers.ts'
import { createMemoryPeers, createNeighbourPeers } from './sessions/peers.ts'
import type { SessionStore } from './sessions/session-store.ts'
import type { TaskStore } from './tasks/task-store.ts'

/** The default services of a host. `node` is its name; `neighbours` reaches the other processes of the machine. */
export const defaultSlots = (
  node: string,
  { now }: Clock,
  neighbours: Neighbours | undefined,
  stores: MemoryStores,
): Slots => ({
  access: openAccess,
  protectedResource: plainResource,
  tokenBinding: noTokenBinding,
  eventStore: createMemoryEventStore({}, now),
  changeBus: neighbours ? createNeighbourBus(neighbours) : createMemoryChangeBus(),
  sessionStore: createMemorySessionStore(node, now),
  peers: neighbours ? createNeighbourPeers(node, neighbours) : createMemoryPeers(node),
  isolation: noIsolation,
  tracer: NO_TRACER,
  authorizationServer: noAuthorizationServer,
  ...stores,
  upstreamTokens: noUpstreamTokens,
})

/** The default stores that plugins implement. */
export type MemoryStores = Pick<Slots, 'grantStore' | 'taskStore'>

/** The services that plugins may replace, by the name of their slot. */
export interface Slots {
  /** Who may use what. Default: everything is open, and `authorize` knows scopes and roles. */
  access: AccessDecider
  /** What a route says of itself as a protected resource. Default: each address is its own resource. */
  protectedResource: ProtectedResource
  /** What is asked of tokens that are bound to a key. Default: nobody checks proofs. */
  tokenBinding: TokenBinding
  /** The events of streams that clients can come back to. Default: in memory, bounded. */
  eventStore: EventStore
  /** Brings changes to whoever listens. Default: within this process. */
  changeBus: ChangeBus
  /** The records of sessions, and which of them idle. Default: in this process. */
  sessionStore: SessionStore
  /** Puts calls into a context that follows what they do. Default: none. */
  tracer: CallTracer
  /** Runs the handlers of tools with `isolate`. Default: none, so startup fails for such a tool. */
  isolation: Isolation
  /** The other nodes that serve the same sessions. Default: there are none. */
  peers: Peers
  /** The authorization server that this host is itself. Default: it is none. */
  authorizationServer: AuthorizationServer
  /** What an authorization server keeps. Default: in this process, bounded. */
  grantStore: GrantStore
  /** Tasks, those who run them, and how they ended. Default: in this process, bounded. */
  taskStore: TaskStore
  /** Tokens of callers at the company's identity provider. Default: there are none. */
  upstreamTokens: UpstreamTokens
}

/** The default services have these, others may leave them out. */
const OPTIONAL = new Set(['scopesToEnter'])

/**
 * Why a service cannot fill a slot: there is none of this name, or it lacks a method that the default has. Undefined: it can.
 */
export function slotFault(defaults: Slots, slot: string, service: unknown): string | undefined {
  const standard: object | undefined = Object.hasOwn(defaults, slot) ? defaults[slot as keyof Slots] : undefined
  if (!standard) return `there is no slot "${slot}"; there are: ${Object.keys(defaults).join(', ')}`
  const has = (of: unknown, name: string) => of != null && typeof Reflect.get(Object(of), name) === 'function'
  const missing = Object.keys(standard).filter(
    name => has(standard, name) && !OPTIONAL.has(name) && !has(service, name),
  )
  if (missing.length === 0) return undefined
  const what = service === undefined || service === null ? String(service) : `a ${typeof service}`
  return `what it fills the slot ${slot} with is ${what} that lacks the methods ${missing.join(', ')}`
}
