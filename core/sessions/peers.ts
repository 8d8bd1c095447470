// Messages between the nodes that share sessions, each addressed to one node. Sessions are named by their digest.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { RequestId } from '../mcp/protocol.ts'
import type { Neighbours } from './neighbours.ts'
import type { SessionState, StateChange } from './session-store.ts'

/** The other nodes. All methods but `receive` reject with `unavailable` if they cannot be reached. */
export interface Peers {
  /** The name of this node. */
  readonly node: string
  /** Resolves once the message is stored for the node; false if there is no such node any more. */
  send(node: string, message: PeerMessage): Promise<boolean>
  /** Whether the node sent a heartbeat within its lifetime, 15 seconds; the answer can be one second old. */
  isAlive(node: string): Promise<boolean>
  /** Sets the listener. Messages arrive in the order in which `send` resolved. */
  receive(listener: (message: PeerMessage) => void): void
  /** This node stops: others can take over its sessions at once. */
  leave(): Promise<void>
}

/** A message to another node. */
export type PeerMessage =
  /** The client's response to a request that the receiver made. */
  | {
      readonly type: 'answer'
      readonly session: string
      readonly id: RequestId
      readonly body: Readonly<Record<string, unknown>>
    }
  /** The client cancelled a request that the receiver runs. */
  | { readonly type: 'cancel'; readonly session: string; readonly request: RequestId; readonly reason: string }
  /** `node` asks whether the receiver runs a request that is registered for it. */
  | { readonly type: 'runs?'; readonly session: string; readonly request: RequestId; readonly node: string }
  /** The response to `runs?`. */
  | { readonly type: 'runs'; readonly session: string; readonly request: RequestId; readonly running: boolean }
  | { readonly type: 'ended'; readonly session: string; readonly reason: string }
  /** The session's settings changed by `change`, and `madeVersion` is the record version with it. Without it, `state` replaces them. */
  | {
      readonly type: 'changed'
      readonly session: string
      readonly version: number
      readonly state: SessionState
      readonly change?: StateChange
      readonly madeVersion?: number
    }
  /** Another node sends the messages that belong to no call. */
  | { readonly type: 'released'; readonly session: string; readonly epoch: number }
  /** `node` follows a stream of the receiver and wants to be notified of new messages. */
  | { readonly type: 'follow'; readonly session: string; readonly stream: string; readonly node: string }
  /** A stream has new messages. `over`: the sender no longer writes it. */
  | { readonly type: 'written'; readonly session: string; readonly stream: string; readonly over?: boolean }
  /** A client's message for the node with the session's single stream. */
  | {
      readonly type: 'message'
      readonly session: string
      readonly text: string
      readonly headers: IncomingHttpHeaders
      readonly user: User | undefined
    }

/** The default of the slot `peers`: no other node. */
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
    receive(received) {
      listener = received
    },
    async leave() {},
  }
}

/** The default of the slot `peers` with several worker processes. Others reach this one once it receives. */
export function createNeighbourPeers(node: string, neighbours: Neighbours): Peers {
  let listener: ((message: PeerMessage) => void) | undefined
  let left = false
  return {
    node,
    send: (other, message) => neighbours.send(other, JSON.stringify(message), message.session),
    isAlive: async other => (other === node ? !left : neighbours.has(other)),
    receive(received) {
      if (!listener) neighbours.join(node, text => listener?.(JSON.parse(text)))
      listener = received
    },
    async leave() {
      if (left) return
      left = true
      await neighbours.leave(node)
    },
  }
}
