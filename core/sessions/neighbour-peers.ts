// The other processes that serve the same config, as nodes: the default of the slot `peers` where there are several.
import type { Neighbours } from './neighbours.ts'
import type { PeerMessage, Peers } from './peers.ts'

/** `node`: the name of this process. The others find it once it receives. */
export function createNeighbourPeers(node: string, neighbours: Neighbours): Peers {
  let listener: ((message: PeerMessage) => void) | undefined
  let left = false
  return {
    node,
    send: (other, message) => neighbours.send(other, JSON.stringify(message), message.session),
    isAlive: async other => (other === node ? !left : neighbours.has(other)),
    receive(heard) {
      if (!listener) neighbours.join(node, text => listener?.(JSON.parse(text)))
      listener = heard
    },
    async leave() {
      if (left) return
      left = true
      await neighbours.leave(node)
    },
  }
}
