// What is written down of a session, so that a node that has never seen it can go on with it: what it was opened with, and
// what its client has set since. For session-store.ts.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { ClientFacts, SessionSetting } from '../mcp/call.ts'
import type { LogLevel } from '../mcp/protocol.ts'
import type { Revision } from '../mcp/revisions.ts'

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
  /** Those of the request that opened it, without what looks like a credential; none for a store that is not shared. */
  readonly headers: IncomingHttpHeaders
}

/** What a session's client has set. */
export interface SessionState {
  /** Undefined until `initialize` was answered. */
  readonly revision: Revision | undefined
  readonly client: ClientFacts
  readonly logLevel: LogLevel
  /** URIs of resources, each once. */
  readonly watched: readonly string[]
}

export const NO_CLIENT: ClientFacts = Object.freeze({ info: undefined, capabilities: {} })

/** That of a session that was opened just now. */
export const FIRST_STATE: SessionState = Object.freeze({
  revision: undefined,
  client: NO_CLIENT,
  logLevel: 'info',
  watched: [],
})

/** A session as every node finds it. */
export interface SessionRecord {
  readonly opening: SessionOpening
  readonly state: SessionState
  /** 1 or more; grows by one with each change of the state or the home. */
  readonly version: number
  /** The node that runs its `runSession`, and has the stream of a transport with only one. */
  readonly home: string
}

/** One change of a session's state. */
export type StateChange = SessionSetting | { readonly revision: Revision; readonly client: ClientFacts }
