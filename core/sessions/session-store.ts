// Session records and their store, which several nodes share. Without one, sessions exist only in the registry.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { ClientInfo, SessionSetting } from '../mcp/calls/call.ts'
import type { LogLevel, RequestId } from '../mcp/wire/protocol.ts'
import type { Revision } from '../mcp/wire/revisions.ts'

/** The configured `sessions` limits, with defaults. */
export interface SessionLimits {
  /** Milliseconds. */
  readonly idleTimeout: number
  readonly maxIdle: number
  /** Undefined: no limit. */
  readonly maxPerOwner: number | undefined
  readonly maxCallsPerSession: number
  readonly maxCallsPerOwner: number
}

/** The opening request, which `configureSession` and `runSession` receive again on another node. */
export interface SessionOpening {
  readonly transport: string
  readonly route: string
  readonly params: Readonly<Record<string, string>>
  /** The owner for limits: the user, or the IP address of an anonymous caller. */
  readonly holder: string
  readonly user: User | undefined
  readonly ip: string
  /** Without credentials; empty for a store that is not shared. */
  readonly headers: IncomingHttpHeaders
}

/** Settings made by the session's client. */
export interface SessionState {
  /** Undefined before the `initialize` response. */
  readonly revision: Revision | undefined
  readonly client: ClientInfo
  readonly logLevel: LogLevel
  readonly watched: readonly string[]
}

export const NO_CLIENT: ClientInfo = Object.freeze({ info: undefined, capabilities: {} })

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
  /** Grows with each change of the state or home, also after a loss. Set by the store. */
  readonly version: number
  /** The node that runs `runSession` and has the stream of single-stream transports. */
  readonly home: string
}

export type StateChange = SessionSetting | { readonly revision: Revision; readonly client: ClientInfo }

/** Sessions without a store. Routes with the same object have the same sessions. */
export interface LocalSessions {
  readonly node: string
  readonly shared: false
}

/**
 * Session records for one node. Methods reject with the HostError `unavailable` if the store cannot be reached. They
 * are idempotent, because responses can be lost.
 */
export interface SessionStore {
  readonly node: string
  /** True: shared by every node; `host`: by all processes on this machine. */
  readonly shared: true | 'host'
  /** Returns the version. Undefined, and nothing stored, above `limits.maxPerOwner` or the owner's share of the store. Otherwise this node has a copy in use. */
  create(digest: string, record: SessionRecord, limits: SessionLimits): Promise<number | undefined>
  /** Called for each message. Returns a newer record and registers the requests. */
  enter(digest: string, entry: EntryRequest, limits: SessionLimits): Promise<Entered>
  /** Removes completed requests. Callers do not await the result. */
  leave(digest: string, requests: readonly RequestId[]): void
  /** Changes the state. Undefined without a record; `full`, unchanged, above `MAX_WATCHED` or `MAX_WATCHED_BYTES`. */
  change(digest: string, change: StateChange): Promise<Changed | 'full' | undefined>
  nodeOf(digest: string, request: RequestId): Promise<string | undefined>
  /** Makes this node the home if the home is still `from`. */
  adopt(digest: string, from: string): Promise<boolean>
  /** Makes this node the sender of messages that belong to no call. Undefined without a record. */
  claimStream(digest: string, stream: string): Promise<StreamClaim | undefined>
  /** Ends a session and returns other nodes with a copy. Undefined without a record, or if in use with `onlyIdle`. */
  end(digest: string, holder: string | undefined, onlyIdle?: boolean): Promise<readonly string[] | undefined>
  /**
   * Reports session use; sessions in use do not expire. Returns sessions to end above `limits.maxIdle` or the store's
   * capacity: the longest idle ones of the holders with most idle sessions.
   */
  mark(uses: readonly SessionUse[], limits: SessionLimits): Promise<readonly Victim[]>
  /** Milliseconds until the idle timeout; undefined without a record. */
  timeLeft(digest: string): Promise<number | undefined>
  /**
   * Restores a lost record as idle. A record that another node restored from an older copy gets the changes of this copy.
   * Returns the record, with the nodes to notify of these changes. Undefined if the session was ended.
   */
  restore(digest: string, record: SessionRecord, held: HeldHere, limits: SessionLimits): Promise<Changed | undefined>
  /** Called when the store is reachable again; recent writes can be lost. */
  onReturn(listener: () => void): void
  /** True for some time after `onReturn`: another node can still restore a missing session. */
  readonly isRecovering: boolean
}

export interface EntryRequest {
  /** The version of this node's copy. 0: this node has no copy. */
  readonly version: number
  readonly requests: readonly RequestId[]
  /** Nodes whose registrations are ignored, because nothing runs there. */
  readonly from: readonly string[]
}

export type Entered =
  | { readonly kind: 'entered'; readonly record: SessionRecord | undefined }
  | { readonly kind: 'taken'; readonly request: RequestId; readonly node: string }
  /** `ended`: the session was ended, and copies must be removed. */
  | { readonly kind: 'missing'; readonly ended: boolean }

export interface Changed {
  readonly record: SessionRecord
  readonly nodes: readonly string[]
}

export interface SessionUse {
  readonly digest: string
  readonly holder: string
  readonly inUse: boolean
  /** Milliseconds since the use began or ended. */
  readonly ago: number
}

export type Victim = Pick<SessionUse, 'digest' | 'holder'>

/** Session data on a node besides the record. */
export interface HeldHere {
  readonly requests: readonly RequestId[]
  readonly claim: { readonly stream: string; readonly epoch: number } | undefined
}

/** The result of `claimStream`. */
export interface StreamClaim {
  /** Higher than every earlier claim, also after a loss; unchanged if this node already had this stream. */
  readonly epoch: number
  readonly before: { readonly node: string; readonly stream: string } | undefined
}
