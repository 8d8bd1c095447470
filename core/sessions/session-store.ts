// Session records and the store for them: in this process (memory-session-store.ts) or shared by all nodes (a plugin).
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { ClientFacts, SessionSetting } from '../mcp/call.ts'
import type { LogLevel, RequestId } from '../mcp/protocol.ts'
import type { Revision } from '../mcp/revisions.ts'

/** The config's `sessions` with its defaults. */
export interface SessionBounds {
  /** Milliseconds. */
  readonly idleTimeout: number
  readonly maxIdle: number
  /** Undefined: no limit. */
  readonly maxPerOwner: number | undefined
  /** Concurrent requests of a session, and of its owner. */
  readonly maxCallsPerSession: number
  readonly maxCallsPerOwner: number
}

/** The request that opened a session: `configureSession` and `runSession` receive it again on another node. */
export interface SessionOpening {
  readonly transport: string
  /** The route's path as configured. */
  readonly route: string
  readonly params: Readonly<Record<string, string>>
  /** The owner that limits apply to: the user, or the IP address of an anonymous caller. */
  readonly holder: string
  readonly user: User | undefined
  readonly ip: string
  /** Without credentials; empty for a store that is not shared. */
  readonly headers: IncomingHttpHeaders
}

/** The settings that a session's client made. */
export interface SessionState {
  /** Undefined until `initialize` was answered. */
  readonly revision: Revision | undefined
  readonly client: ClientFacts
  readonly logLevel: LogLevel
  /** URIs of subscribed resources, each once. */
  readonly watched: readonly string[]
}

export const NO_CLIENT: ClientFacts = Object.freeze({ info: undefined, capabilities: {} })

/** The state of a new session. */
export const FIRST_STATE: SessionState = Object.freeze({
  revision: undefined,
  client: NO_CLIENT,
  logLevel: 'info',
  watched: [],
})

/** A session as every node reads it. */
export interface SessionRecord {
  readonly opening: SessionOpening
  readonly state: SessionState
  /** 1 or more; grows by one with each change of the state or the home. */
  readonly version: number
  /** The node that runs its `runSession` and, for a transport with a single stream, has that stream. */
  readonly home: string
}

/** One change of a session's state. */
export type StateChange = SessionSetting | { readonly revision: Revision; readonly client: ClientFacts }

/** A store in this process answers synchronously. */
type Awaitable<Value> = Value | Promise<Value>

/**
 * Session records as one node sees them. Sessions are named by their digests, nodes by their names. If the store cannot be
 * reached, methods reject with the HostError `unavailable`. Methods of a shared store can be called again with the same
 * arguments, because a response can be lost.
 */
export interface SessionStore {
  /** The name of this node. */
  readonly node: string
  /** True if every node reads the same records; `host` if all processes on this machine do; false if only this process does. */
  readonly shared: boolean | 'host'
  /** Returns false and stores nothing if the holder already has `bounds.maxPerOwner` sessions. Otherwise the node has a copy in use. */
  create(digest: string, record: SessionRecord, bounds: SessionBounds): Awaitable<boolean>
  /** Checks whether the session exists, returns a newer record, and registers the requests. Called for each message. */
  enter(digest: string, visit: Visit, bounds: SessionBounds): Awaitable<Entered>
  /** Requests are answered. Not awaited. */
  leave(digest: string, requests: readonly RequestId[]): void
  /** Undefined if there is no record; `full`, without a change, above `MAX_WATCHED` resources or `MAX_WATCHED_BYTES`. */
  change(digest: string, change: StateChange): Awaitable<Changed | 'full' | undefined>
  /** The node that runs a request. */
  nodeOf(digest: string, request: RequestId): Awaitable<string | undefined>
  /** Makes this node the session's home if it still is `from`. */
  adopt(digest: string, from: string): Awaitable<boolean>
  /** Makes this node the sender of messages that belong to no call, on this stream. Undefined if there is no record. */
  claimStream(digest: string, stream: string): Awaitable<StreamClaim | undefined>
  /**
   * Returns the other nodes with a copy; undefined if there was no record. With `onlyIdle`, a session in use stays and
   * returns undefined: one marked so by a node, or with a request that has not left.
   */
  end(digest: string, holder: string | undefined, onlyIdle?: boolean): Awaitable<readonly string[] | undefined>
  /**
   * Reports how sessions of this node are used; sessions in use do not expire, and unknown ones are ignored. Returns sessions
   * to end, above `bounds.maxIdle` or the store's capacity: the longest idle ones of the holders with most idle sessions.
   */
  mark(uses: readonly SessionUse[], bounds: SessionBounds): Awaitable<readonly Victim[]>
  /** Milliseconds until the idle timeout; undefined if there is no record. */
  timeLeft(digest: string): Awaitable<number | undefined>
  /** Stores the record of a session of this node again, as idle, after the store lost it. Returns false if the session was ended. */
  restore(digest: string, record: SessionRecord, held: HeldHere, bounds: SessionBounds): Awaitable<boolean>
  /** Called after the store was unreachable and may have lost recent writes. */
  onReturn(listener: () => void): void
  /** True for some time after `onReturn`: another node may still restore a missing session. */
  readonly unsure: boolean
}

/** The arguments of `enter`. */
export interface Visit {
  /** The version of this node's copy; 0: none. */
  readonly version: number
  /** Ids of the requests that begin. */
  readonly requests: readonly RequestId[]
  /** Nodes whose registrations of these requests are ignored, because nothing runs there. */
  readonly from: readonly string[]
}

/** The result of `enter`. */
export type Entered =
  /** `record`: undefined if the copy has its version. */
  | { readonly kind: 'entered'; readonly record: SessionRecord | undefined }
  /** Nothing changed: this request runs on this node. */
  | { readonly kind: 'taken'; readonly request: RequestId; readonly node: string }
  /** No record; `ended`: the session was ended, and copies must go. */
  | { readonly kind: 'missing'; readonly ended: boolean }

/** The result of `change`. */
export interface Changed {
  readonly record: SessionRecord
  /** Other nodes with a copy. */
  readonly nodes: readonly string[]
}

/** How a session of this node is used. */
export interface SessionUse {
  readonly digest: string
  readonly holder: string
  readonly inUse: boolean
  /** Milliseconds since that began. */
  readonly ago: number
}

/** A session to end; `holder` as the store names it. */
export interface Victim {
  readonly digest: string
  readonly holder: string
}

/** What a node has of a session besides its record. */
export interface HeldHere {
  /** Ids of the requests that run here. */
  readonly requests: readonly RequestId[]
  /** The stream for messages that belong to no call, if this node has it. */
  readonly claim: { readonly stream: string; readonly epoch: number } | undefined
}

/** The result of `claimStream`. */
export interface StreamClaim {
  /** Higher than every claim before, also after a loss; unchanged if this node already had this stream. */
  readonly epoch: number
  /** The node and stream before; undefined: none. */
  readonly before: { readonly node: string; readonly stream: string } | undefined
}
