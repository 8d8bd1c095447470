// Where the records of sessions are kept: in this process (memory-session-store.ts), or where every node finds them, so
// that every node may serve every session (a plugin fills the slot).
import type { RequestId } from '../mcp/protocol.ts'
import type { SessionBounds } from './session-bounds.ts'
import type { SessionRecord, StateChange } from './session-record.ts'

/** At once, or later: a store in this process has no reason to wait. */
type Awaitable<Value> = Value | Promise<Value>

/**
 * The records of sessions, as one node sees them. Sessions are named by their digests, nodes by their names. What
 * cannot be asked rejects with the HostError `unavailable`. A shared store may be asked the same twice, for an answer
 * may be lost.
 */
export interface SessionStore {
  /** This node, as the store names it. */
  readonly node: string
  /**
   * True where every node finds its records; `host` where all processes of this host do, on one machine; false where they are
   * of this process alone, and end with it.
   */
  readonly shared: boolean | 'host'
  /**
   * False, and nothing is kept, where its holder has `bounds.maxPerOwner` already. The node has a copy then, and uses
   * it.
   */
  create(digest: string, record: SessionRecord, bounds: SessionBounds): Awaitable<boolean>
  /**
   * A request comes: whether the session is there, what is new about it, and which of its requests run. Asked with
   * each.
   */
  enter(digest: string, visit: Visit, bounds: SessionBounds): Awaitable<Entered>
  /** Requests are answered. Not waited for; one that is not told is found out when its id comes again. */
  leave(digest: string, requests: readonly RequestId[]): void
  /**
   * Undefined where there is no record; `full`, and no change, past `MAX_WATCHED` resources or `MAX_WATCHED_BYTES` that
   * they cost.
   */
  change(digest: string, change: StateChange): Awaitable<Changed | 'full' | undefined>
  /** The node that runs a request. */
  nodeOf(digest: string, request: RequestId): Awaitable<string | undefined>
  /** Makes this node the session's home, where it still is `from`. */
  adopt(digest: string, from: string): Awaitable<boolean>
  /** Makes this node the one that sends what belongs to no call, on this stream. Undefined where there is no record. */
  claimStream(digest: string, stream: string): Awaitable<StreamClaim | undefined>
  /**
   * The nodes that had a copy, this one left out; undefined where there was no record, or it is in use and `onlyIdle`:
   * marked so by some node, or with a request that has entered and not left.
   */
  end(digest: string, holder: string | undefined, onlyIdle?: boolean): Awaitable<readonly string[] | undefined>
  /**
   * How sessions of this node are used now; what is in use does not expire, and one that is not known is passed over.
   * Gives sessions that are to end, because more than `bounds.maxIdle` idle or the store has no room for more: the longest
   * idle ones of the holders who have most. A shared store is told a few times a second.
   */
  mark(uses: readonly SessionUse[], bounds: SessionBounds): Awaitable<readonly Victim[]>
  /**
   * Milliseconds until it ends for being idle, `bounds.idleTimeout` after its last use; undefined where there is no
   * record.
   */
  timeLeft(digest: string): Awaitable<number | undefined>
  /**
   * Keeps the record of a session that lives here, where the store has lost it; not as in use. False where it was
   * ended.
   */
  restore(digest: string, record: SessionRecord, held: HeldHere, bounds: SessionBounds): Awaitable<boolean>
  /** Called when the store was away, and may have lost what was kept last. */
  onReturn(listener: () => void): void
  /** True for a while after `onReturn`: what is missing may be what another node has not restored yet. */
  readonly unsure: boolean
}

/** A request that comes to a session, as the node that has it asks. */
export interface Visit {
  /** The version of the copy that this node has; 0: none. */
  readonly version: number
  /** Ids of the requests that begin. */
  readonly requests: readonly RequestId[]
  /** Nodes whose registrations of these requests do not count: nothing runs there. */
  readonly from: readonly string[]
}

/** What a visit found. */
export type Entered =
  /** `record`: undefined where the copy is of its version. */
  | { readonly kind: 'entered'; readonly record: SessionRecord | undefined }
  /** Nothing was done: this request runs, at this node. */
  | { readonly kind: 'taken'; readonly request: RequestId; readonly node: string }
  /** There is no record; `ended`: it was ended, and a copy that did not hear of it is to go. */
  | { readonly kind: 'missing'; readonly ended: boolean }

/** What a change of a record made of it. */
export interface Changed {
  readonly record: SessionRecord
  /** Others that have a copy. */
  readonly nodes: readonly string[]
}

/** How a session at this node is used. */
export interface SessionUse {
  readonly digest: string
  readonly holder: string
  readonly inUse: boolean
  /** How long ago that began, milliseconds. */
  readonly ago: number
}

/** A session that is to end; `holder` as the store names him. */
export interface Victim {
  readonly digest: string
  readonly holder: string
}

/** What a node has of a session beside its record. */
export interface HeldHere {
  /** Ids of the requests that run here. */
  readonly requests: readonly RequestId[]
  /** The stream for what belongs to no call, where this node has it. */
  readonly claim: { readonly stream: string; readonly epoch: number } | undefined
}

/** Who has the stream for what belongs to no call. */
export interface StreamClaim {
  /** Higher than that of any claim before, also after a loss; as before where this node had this very stream. */
  readonly epoch: number
  /** Whose it was; undefined: nobody's. */
  readonly before: { readonly node: string; readonly stream: string } | undefined
}
