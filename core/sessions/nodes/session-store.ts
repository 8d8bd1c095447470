// Where the records of sessions are kept when every node may serve every session; session-store-redis keeps them in
// Redis. Without one, sessions live in their node's memory alone.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../../kernel/user.ts'
import type { ClientFacts } from '../../mcp/call.ts'
import type { LogLevel, RequestId, Revision } from '../../mcp/protocol.ts'
import type { SessionBounds } from '../registry.ts'

/** What a session was opened with: what `configureSession` and `runSession` see again at another node. */
export interface SessionOpening {
  readonly transport: string
  /** The route's path as configured. */
  readonly route: string
  readonly params: Readonly<Record<string, string>>
  /** Whose it is, as the bounds count. */
  readonly holder: string
  readonly user: User | undefined
  readonly ip: string
  /** Those of the request that opened it, without its credentials. */
  readonly headers: IncomingHttpHeaders
}

/** What a session's client has set. */
export interface SessionState {
  /** Undefined until `initialize` was answered. */
  readonly revision: Revision | undefined
  readonly client: ClientFacts
  readonly logLevel: LogLevel
  readonly watched: readonly string[]
}

/** That of a session that was opened just now. */
export const FIRST_STATE: SessionState = {
  revision: undefined,
  client: { info: undefined, capabilities: {} },
  logLevel: 'info',
  watched: [],
}

export interface SessionRecord {
  readonly opening: SessionOpening
  readonly state: SessionState
  /** Grows with each change of the state. */
  readonly version: number
  /** The node that runs its `runSession`, and has the stream of a transport with only one. */
  readonly home: string
}

/** One change of a session's state. */
export type StateChange =
  | { readonly revision: Revision; readonly client: ClientFacts }
  | { readonly logLevel: LogLevel }
  | { readonly watch: string }
  | { readonly unwatch: string }

export interface Visit {
  /** The version of the copy that this node has; 0: none. */
  readonly version: number
  /** Ids of the requests that begin. */
  readonly requests: readonly RequestId[]
  /** Nodes whose registrations of these requests do not count: nothing runs there. */
  readonly from: readonly string[]
}

export type Entered =
  | {
      readonly kind: 'entered'
      /** Where the copy is not of this version. */
      readonly record: SessionRecord | undefined
    }
  /** Nothing was done: this request runs, at this node. */
  | { readonly kind: 'taken'; readonly request: RequestId; readonly node: string }
  /** There is no record; `ended`: because the session was ended. */
  | { readonly kind: 'missing'; readonly ended: boolean }

/** How a session at this node is used. */
export interface SessionUse {
  readonly digest: string
  readonly holder: string
  readonly inUse: boolean
  /** How long ago that began, milliseconds. */
  readonly ago: number
}

/** Sessions are named by their digests. Everything rejects with `unavailable` where the store cannot be asked. */
export interface SessionStore {
  /** False, and nothing is kept, where its holder has `bounds.maxPerOwner` already. */
  create(digest: string, record: SessionRecord, bounds: SessionBounds): Promise<boolean>
  /** A request comes: whether the session is there, what is new about it, and which of its requests run. One round trip. */
  enter(digest: string, visit: Visit, bounds: SessionBounds): Promise<Entered>
  /** Requests are answered. Not waited for; one that is not told is found out when its id comes again. */
  leave(digest: string, requests: readonly RequestId[]): void
  /** Undefined where there is no record. `nodes`: others that have a copy. */
  change(
    digest: string,
    change: StateChange,
  ): Promise<{ readonly record: SessionRecord; readonly nodes: readonly string[] } | 'full' | undefined>
  /** The node that runs a request. */
  nodeOf(digest: string, request: RequestId): Promise<string | undefined>
  /** Makes this node the session's home, where it still is `from`. */
  adopt(digest: string, from: string): Promise<boolean>
  /** Makes this node the one that sends what belongs to no call, on this stream. Undefined where there is no record. */
  claimStream(digest: string, stream: string): Promise<StreamClaim | undefined>
  /** The nodes that had a copy, this one left out; undefined where there was no record, or it is in use and `onlyIdle`. */
  end(digest: string, holder: string | undefined, onlyIdle?: boolean): Promise<readonly string[] | undefined>
  /**
   * How sessions of this node are used now; what is in use does not expire. Gives sessions that are to end, because
   * more than `bounds.maxIdle` idle.
   */
  mark(uses: readonly SessionUse[], bounds: SessionBounds): Promise<ReadonlyArray<{ digest: string; holder: string }>>
  /** Milliseconds until it ends for being idle; undefined where there is no record. */
  timeLeft(digest: string): Promise<number | undefined>
  /** Keeps the record of a session that lives here, where the store has lost it. False where the session was ended. */
  restore(digest: string, record: SessionRecord, held: HeldHere, bounds: SessionBounds): Promise<boolean>
  /** Called when the store was away, and may have lost what was kept last. */
  onReturn(listener: () => void): void
  /** True for a while after `onReturn`: what is missing may be what another node has not restored yet. */
  readonly unsure: boolean
}

/** What a node has of a session beside its record. */
export interface HeldHere {
  /** Ids of the requests that run here. */
  readonly requests: readonly RequestId[]
  /** The stream for what belongs to no call, where this node has it. */
  readonly claim: { readonly stream: string; readonly epoch: number } | undefined
}

export interface StreamClaim {
  /** Higher than that of any claim before, also after a loss; as before where this node had this very stream. */
  readonly epoch: number
  /** Whose it was; undefined: nobody's. */
  readonly before: { readonly node: string; readonly stream: string } | undefined
}
