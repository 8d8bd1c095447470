// The slots of a host: the services that plugins may replace, route by route. The table itself is the kernel's.
import type { AccessDecider, ProtectedResource } from './mcp/access-decider.ts'
import type { ChangeBus } from './mcp/change-bus.ts'
import type { EventStore } from './sessions/event-store.ts'
import type { Peers } from './sessions/peers.ts'
import type { SessionStore } from './sessions/session-store.ts'

/** The services that plugins may replace, by the name of their slot. */
export interface Slots {
  /** Who may use what. Default: everything is open, and `authorize` knows scopes and roles. */
  access: AccessDecider
  /** What a route says of itself as a protected resource. Default: each address is its own resource. */
  protectedResource: ProtectedResource
  /** The events of streams that clients can come back to. Default: in memory, bounded. */
  eventStore: EventStore
  /** Brings changes to whoever listens. Default: within this process. */
  changeBus: ChangeBus
  /** The records of sessions, and which of them idle. Default: in this process. */
  sessionStore: SessionStore
  /** The other nodes that serve the same sessions. Default: there are none. */
  peers: Peers
}
