// What the parts of an upstream server share.
import type { CallQueue, InternalHost } from '../../core/internal.ts'
import type { ServedToolset } from '../../core/plugin.ts'
import type { LinkedList } from '../../core/transport.ts'
import type { Connection, ConnectOptions, RemoteError, ServerNotification, Target } from '../../remote/index.ts'
import type { RecordUpstreamCall, UpstreamState } from '../families/upstream-calls/index.ts'
import type { HeldCalls } from './held.ts'
import type { LockEntry } from './lock-entry.ts'
import type { NodeRelay } from './node-relay.ts'
import type { SessionLimit } from './session-limit.ts'
import type { ServerSettings } from './settings.ts'
import type { Supervisor } from './supervisor.ts'
import type { Targets } from './targets.ts'

export interface UpstreamParts {
  readonly host: InternalHost
  readonly settings: ServerSettings
  readonly toolset: Pick<ServedToolset, 'replace'>
  readonly targets: Targets
  /** The held calls of this server, of all versions of its options. */
  readonly held: HeldCalls
  readonly nodeRelay: NodeRelay
  /** Queues with calls, for metrics. */
  readonly busy: LinkedList<CallQueue>
  readonly processes: SessionLimit
  readonly isLocal: boolean
  /** The server's entry in the lock file. */
  readonly accepted: LockEntry | undefined
  readonly record: RecordUpstreamCall
  /** Counts a reconnection. */
  countReconnection(): void
}

/** The server, as its lists, calls and sessions use it. */
export interface UpstreamServer {
  readonly state: UpstreamState['state']
  /** Keeps the connection for lists open. */
  readonly supervisor: Supervisor
  readonly lists: { readonly withheld: ReadonlyMap<string, string>; requestRefresh(): void }
  /** Aborts when the server is closed. */
  readonly signal: AbortSignal
  /** The time for errors of calls, ISO 8601: the start of the outage, or the current time without an outage. */
  readonly outageStart: string
  /** Returns the error of a call while the server is down. */
  unavailable(): Error
  /** Opens a connection for a session. */
  connect(target: Target, options: Partial<ConnectOptions>): Promise<Connection>
  /** Reads the lists of a changed program from a new process, so that changed tools are withheld from the session, too. */
  checkVersion(connection: Connection): Promise<void>
  handleNotification(notification: ServerNotification): void
  /** Keeps an error for operators. Returns its reason. */
  recordError(error: unknown): string
  /** Ends the connection for lists if the error shows that the server cannot be reached. */
  reportUnreachable(error: unknown): void
  /** Connects again, and detects the protocol version again. Does nothing if `connection` is not the current one. */
  reconnect(error: RemoteError, connection?: Connection): void
}
