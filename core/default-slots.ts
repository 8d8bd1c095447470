// What is in the slots of a host where no plugin fills them.
import { noTokenBinding, openAccess, plainResource } from './access/access.ts'
import { noAuthorizationServer } from './access/authorization-server.ts'
import { createMemoryGrantStore } from './access/memory-grant-store.ts'
import type { Clock } from './http/clock.ts'
import { createMemoryChangeBus } from './mcp/change-bus.ts'
import { noIsolation } from './mcp/isolation.ts'
import { NO_TRACER } from './mcp/observe.ts'
import { noUpstreamTokens } from './mcp/upstream-tokens.ts'
import { createMemoryEventStore } from './sessions/memory-event-store.ts'
import { createMemoryPeers } from './sessions/memory-peers.ts'
import { createMemorySessionStore } from './sessions/memory-session-store.ts'
import { createNeighbourBus } from './sessions/neighbour-bus.ts'
import { createNeighbourPeers } from './sessions/neighbour-peers.ts'
import type { Neighbours } from './sessions/neighbours.ts'
import type { Slots } from './slots.ts'
import { createMemoryTaskStore } from './tasks/memory-task-store.ts'

/** For one host; `node` is its name, `neighbours` the way to the processes beside it. */
export const defaultSlots = (node: string, { now }: Clock, neighbours?: Neighbours): Slots => ({
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
  grantStore: createMemoryGrantStore(undefined, now),
  taskStore: createMemoryTaskStore(undefined, now),
  upstreamTokens: noUpstreamTokens,
})
