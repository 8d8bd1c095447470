// Messages from one node to another: what happens to a session at one node, and concerns what another node has of it.
// Addressed to one node each; a plugin carries them. Sessions are named by their digest.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { RequestId } from '../mcp/protocol.ts'
import type { SessionState, StateChange } from './session-record.ts'

/** The other nodes, as one of them sees them. Everything but `receive` rejects with `unavailable` where they cannot be asked. */
export interface Peers {
  /** This node, as the others know it. */
  readonly node: string
  /** Resolves once the message is kept for the node; false where there is no such node any more. */
  send(node: string, message: PeerMessage): Promise<boolean>
  /** Whether the node was heard of within its lifetime, 15 seconds; the answer may be a second old. */
  isAlive(node: string): Promise<boolean>
  /** Messages in the order in which their sender's promises resolved. One listener. */
  receive(listener: (message: PeerMessage) => void): void
  /** This node takes no more part: what it did may be taken over at once. */
  leave(): Promise<void>
}

/** What one node tells another. */
export type PeerMessage =
  /** The client's answer to a question that the receiver asked. */
  | {
      readonly type: 'answer'
      readonly session: string
      readonly id: RequestId
      readonly body: Readonly<Record<string, unknown>>
    }
  /** The client cancelled a request that the receiver runs. */
  | { readonly type: 'cancel'; readonly session: string; readonly request: RequestId; readonly reason: string }
  /** `node` asks whether the receiver runs a request that is registered as the receiver's. */
  | { readonly type: 'runs?'; readonly session: string; readonly request: RequestId; readonly node: string }
  /** The answer to that. */
  | { readonly type: 'runs'; readonly session: string; readonly request: RequestId; readonly running: boolean }
  | { readonly type: 'ended'; readonly session: string; readonly reason: string }
  /**
   * The session's settings are `state` now; or with `change` they are what they were before that, and it: `madeVersion` is
   * the version of the record with it, and `version` and `state` are to be passed over.
   */
  | {
      readonly type: 'changed'
      readonly session: string
      readonly version: number
      readonly state: SessionState
      readonly change?: StateChange
      readonly madeVersion?: number
    }
  /** Another node sends what belongs to no call. */
  | { readonly type: 'released'; readonly session: string; readonly epoch: number }
  /** `node` reads along on a stream of the receiver's, and wants to hear when there is more. */
  | { readonly type: 'follow'; readonly session: string; readonly stream: string; readonly node: string }
  /** There is more on a stream. `over`: the sender writes it no more, and all that it had is in the store, or was. */
  | { readonly type: 'written'; readonly session: string; readonly stream: string; readonly over?: boolean }
  /** A message of the client, which the receiver is to take: its answers flow on the one stream that is there. */
  | {
      readonly type: 'message'
      readonly session: string
      readonly text: string
      readonly headers: IncomingHttpHeaders
      readonly user: User | undefined
    }
