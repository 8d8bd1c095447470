// Selects the session of each call: the connection of all callers, or a session with the caller's credentials.
import type { CallContext } from '../../core/index.ts'
import type { Call } from '../../core/plugin.ts'
import { type Connection, RemoteError } from '../../remote/index.ts'
import { isPerCaller } from '../families/credentials/index.ts'
import { capabilitiesFor } from './calls.ts'
import { reasonOf } from './failures.ts'
import type { UpstreamParts, UpstreamServer } from './server-parts.ts'
import { createSessions, type SessionEvents, type SessionLease, type Sessions } from './sessions.ts'
import type { CallCredentials, UserHeaders } from './targets.ts'

/** Minimum time between two log lines about lost sessions, milliseconds. */
const REPORT_INTERVAL = 1_000

export class CallSessions {
  readonly #server: UpstreamServer
  readonly #parts: UpstreamParts
  readonly #sessions: Sessions
  /** Client sessions whose first call with an upstream session has been checked. */
  readonly #checkedSessions = new WeakSet<NonNullable<Call['session']>>()
  readonly #credentials = new WeakMap<Call, CallCredentials>()
  /** The headers of each session's last call. */
  readonly #sessionHeaders = new WeakMap<Connection, { current: UserHeaders }>()
  /** True from the end of a session until the next one opens. */
  #hasLostSession = false
  #reportedAt = Number.NEGATIVE_INFINITY

  constructor(server: UpstreamServer, parts: UpstreamParts) {
    this.#server = server
    this.#parts = parts
    this.#sessions = createSessions({
      settings: parts.settings,
      clock: parts.host.clock,
      processes: parts.processes,
      isLocal: parts.isLocal,
      open: (...opened) => this.#open(...opened),
      onNotification: notification => server.handleNotification(notification),
    })
  }

  get size(): number {
    return this.#sessions.size
  }
  /** True from the end of a session until the next one opens. */
  get hasLostSession(): boolean {
    return this.#hasLostSession
  }

  /** Returns the session for a call. */
  async acquire(ctx: CallContext, call: Call): Promise<SessionLease> {
    const credentials = await this.#parts.targets.authorize(ctx)
    if (credentials) this.#credentials.set(call, credentials)
    const lease = this.#leaseShared() ?? (await this.#leaseWhenConnected(call))
    if (lease.session.close) this.#warnOfOtherNode(ctx, call)
    return lease
  }

  /** Returns the forwarded headers and the token of the caller. */
  headersFor(call: Call): UserHeaders {
    const forwarded = this.#parts.targets.forwarded(call)
    const headers = this.#credentials.get(call)?.headers
    return headers ? { ...forwarded, ...headers } : forwarded
  }

  /** Called after a response that refused the token. True if a repetition of the call can succeed. */
  invalidateToken(call: Call, stepUp: string | undefined): boolean {
    const own = this.#credentials.get(call)
    return own ? own.invalidateToken(stepUp) : stepUp === undefined && this.#parts.targets.invalidateToken()
  }

  /** Reports a session of one caller or user that the server has ended: at most once a second. */
  reportLost(error: RemoteError): void {
    if (this.#parts.settings.sessions === 'per-call') return
    this.#hasLostSession = true
    const now = this.#parts.host.clock.monotonic()
    if (now - this.#reportedAt < REPORT_INTERVAL) return
    this.#reportedAt = now
    const fields = { upstream: this.#parts.settings.name, reason: reasonOf(error) }
    this.#parts.host.log.warn({ code: 'MH2959', ...fields }, 'a session at an upstream server ended: its state is lost')
  }

  close(): Promise<void> {
    return this.#sessions.close()
  }

  /** True if all callers can share a connection: the server has no sessions, or the options allow it. */
  #isShared(connection: Connection): boolean {
    const { sessions, http } = this.#parts.settings
    if (sessions === 'shared') return true
    if (sessions !== 'auto') return false
    return connection.era === 'modern' || (http !== undefined && connection.sessionId === undefined)
  }

  /** Returns the connection for lists, if all callers share it and it is open. */
  #leaseShared(): SessionLease | undefined {
    const { state } = this.#server.supervisor
    if (state.status !== 'up' || !this.#isShared(state.connection)) return undefined
    return { session: { connection: state.connection, runs: undefined, logLevel: undefined }, release: () => undefined }
  }

  async #leaseWhenConnected(call: Call): Promise<SessionLease> {
    // Calls do not need the list connection, which has no token.
    if (isPerCaller(this.#parts.settings.http?.auth) && this.#server.state === 'needs login')
      return this.#leaseOwn(call)
    await this.#server.supervisor.get().catch(() => {
      throw this.#server.unavailable()
    })
    return this.#leaseShared() ?? this.#leaseOwn(call)
  }

  async #leaseOwn(call: Call): Promise<SessionLease> {
    const lease = await this.#sessions.acquire(call)
    const headers = this.#sessionHeaders.get(lease.session.connection)
    if (headers) headers.current = this.headersFor(call)
    return lease
  }

  async #open(call: Call, events: SessionEvents, signal: AbortSignal): Promise<Connection> {
    const headers = { current: this.headersFor(call) }
    const target = await this.#parts.targets.target(() => headers.current)
    signal.throwIfAborted()
    const capabilities = capabilitiesFor(this.#parts.settings, call.session ? call.client.capabilities : undefined)
    const { onRequest, onNotification } = events
    const onClosed = (error: RemoteError) => {
      this.reportLost(error)
      events.onClosed()
    }
    const onReopened = () => this.reportLost(new RemoteError('lost', 'the server has ended the session'))
    const connection = await this.#server.connect(target, {
      capabilities,
      onReopened,
      onRequest,
      onNotification,
      onClosed,
      signal,
    })
    try {
      if (this.#parts.settings.command) await this.#server.checkVersion(connection)
      signal.throwIfAborted()
    } catch (error) {
      await connection.close()
      throw error
    }
    this.#hasLostSession = false
    this.#sessionHeaders.set(connection, headers)
    return connection
  }

  /** Warns a client whose session started on another node. */
  #warnOfOtherNode(ctx: CallContext, call: Call) {
    const { session } = call
    if (!session || this.#checkedSessions.has(session)) return
    this.#checkedSessions.add(session)
    const { name, sessions } = this.#parts.settings
    const isOwn = sessions === 'auto' || sessions === 'per-session'
    if (!isOwn || session.home === undefined || session.home === this.#parts.nodeRelay.nodeOf(call)) return
    ctx.log(
      'warning',
      `Another node now serves this client session, so a new session at the server "${name}" was opened. State of earlier calls may be missing.`,
    )
  }
}
