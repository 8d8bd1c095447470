// The default of the slot `peers`: this node, and nobody else.
import type { PeerMessage, Peers } from './peers.ts'

export function createMemoryPeers(node: string): Peers {
  let listener: ((message: PeerMessage) => void) | undefined
  return {
    node,
    async send(to, message) {
      if (to !== node) return false
      listener?.(message)
      return true
    },
    isAlive: async other => other === node,
    receive(heard) {
      listener = heard
    },
    async leave() {},
  }
}
