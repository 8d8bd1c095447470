// What sessions use without other nodes.
import { createChangeBus } from '../../core/mcp/definitions/change-bus.ts'
import { createPeers } from '../../core/sessions/peers.ts'
import { createMemoryBus } from '../../core/store/memory-bus.ts'

export const createMemoryChangeBus = () => createChangeBus(createMemoryBus('here'))

export const createMemoryPeers = (node: string) => createPeers(createMemoryBus(node))
