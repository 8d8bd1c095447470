// Messages between nodes that share sessions. Sessions are identified by their digest.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import type { Bus } from '../store/bus.ts'
import type { SessionState, StateChange } from './session-store.ts'

/** Methods except `receive` reject with `unavailable` if nodes cannot be reached. */
export interface Peers {
  readonly node: string
  readonly shared: Bus['shared']
  /** Resolves once the message is stored; false if the node does not exist. */
  send(node: string, message: PeerMessage): Promise<boolean>
  /** True after a heartbeat within the last 15 seconds. Can be cached for one second. */
  isAlive(node: string): Promise<boolean>
  /** Sends to all nodes, including this one. */
  publish(message: PluginMessage): void | Promise<void>
  /** Each listener receives all messages, in `send` order. */
  receive(listener: (message: PeerMessage) => void): void
  /** Stops this node: others can take over its sessions at once. */
  leave(): Promise<void>
}

/** A message between the instances of a plugin. Sessions share the bus fairly. */
export type PluginMessage = Readonly<{ type: 'plugin'; plugin: string; session: string; body: unknown }>

export type PeerMessage =
  | PluginMessage
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
  /** `version`: of the record after the change. */
  | { readonly type: 'changed'; readonly session: string; readonly version: number; readonly change: StateChange }
  /** The record after a loss. */
  | { readonly type: 'restored'; readonly session: string; readonly version: number; readonly state: SessionState }
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
      /** Without credentials. */
      readonly headers: IncomingHttpHeaders
      readonly user: User | undefined
    }

const PREFIX = 'peers:'

export function createPeers(bus: Bus): Peers {
  const listeners: Array<(message: PeerMessage) => void> = []
  const deliver = (text: string) => {
    for (const listener of listeners) listener(JSON.parse(text))
  }
  return {
    node: bus.node,
    shared: bus.shared,
    send: (to, message) => bus.send(to, JSON.stringify(message), message.session),
    publish: message => bus.publish(PREFIX + JSON.stringify(message)),
    isAlive: other => bus.isAlive(other),
    receive(listener) {
      if (listeners.push(listener) > 1) return
      bus.receive(deliver)
      bus.subscribe(text => (text?.startsWith(PREFIX) ? deliver(text.slice(PREFIX.length)) : undefined))
    },
    leave: () => bus.leave(),
  }
}
