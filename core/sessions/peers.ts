// Messages between nodes that share sessions. Sessions are identified by their digest.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { RequestId } from '../mcp/protocol.ts'
import type { Neighbours } from './neighbours.ts'
import type { SessionState, StateChange } from './session-store.ts'

/** Methods except `receive` reject with `unavailable` if nodes cannot be reached. */
export interface Peers {
  readonly node: string
  /** Resolves once the message is stored; false if the node does not exist. */
  send(node: string, message: PeerMessage): Promise<boolean>
  /** True after a heartbeat within the last 15 seconds. Can be cached for one second. */
  isAlive(node: string): Promise<boolean>
  /** Messages arrive in `send` order. */
  receive(listener: (message: PeerMessage) => void): void
  /** Stops this node: others can take over its sessions at once. */
  leave(): Promise<void>
}

/** A message to another node. */
export type PeerMessage =
  | {
      readonly type: 'answer'
      readonly session: string
      readonly id: RequestId
      readonly body: Readonly<Record<string, unknown>>
    }
  | { readonly type: 'cancel'; readonly session: string; readonly request: RequestId; readonly reason: string }
  | { readonly type: 'runs?'; readonly session: string; readonly request: RequestId; readonly node: string }
  | { readonly type: 'runs'; readonly session: string; readonly request: RequestId; readonly running: boolean }
  | { readonly type: 'ended'; readonly session: string; readonly reason: string }
  /** `madeVersion`: the record version after `change`. Without it, `state` replaces the settings. */
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
