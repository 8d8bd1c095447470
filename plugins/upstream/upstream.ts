// One upstream server: its connection for lists, its state, and reconnection.
import { isDeepStrictEqual } from 'node:util'
import { redactUrl } from '../../core/auth.ts'
import {
  type Connection,
  type ConnectOptions,
  connect,
  RemoteError,
  type ServerNotification,
  type Target,
} from '../../remote/index.ts'
import { isPerCaller } from '../families/credentials/index.ts'
import { countsText, visibleLine } from '../families/texts/index.ts'
import type { UpstreamState } from '../families/upstream-calls/index.ts'
import { CallSender } from './call-sender.ts'
import { listCapabilities } from './calls.ts'
import { isLoginNeeded, reasonOf, reasonText, shortReasonOf, unavailableError } from './failures.ts'
import type { HeldCalls } from './held.ts'
import { MAX_TEXT } from './lists.ts'
import type { LockEntry } from './lock-entry.ts'
import { ServedLists } from './served-lists.ts'
import type { UpstreamParts, UpstreamServer } from './server-parts.ts'
import type { ServerSettings } from './settings.ts'
import { createSubscriptions, type Subscriptions } from './subscriptions.ts'
import { createSupervisor, type Supervisor, type SupervisorState } from './supervisor.ts'
import { UpstreamRequest } from './upstream-request.ts'
import { routeUri, serverUri } from './uris.ts'

type State = UpstreamState['state']

/** Maximum characters of a reason in the description of the state. */
const MAX_REASON = 500
/** Minimum time between two restarts because of a changed version, milliseconds. */
const VERSION_CHECK_INTERVAL = 60_000

const FIX_DOWN =
  'correct `url`, `command` or the credentials, or start the server; a reload (SIGHUP) or restart retries at once'

const isoTime = (at: number): string => new Date(at).toISOString()

export class Upstream implements UpstreamServer {
  readonly settings: ServerSettings
  readonly lists: ServedLists
  readonly supervisor: Supervisor
  readonly calls: CallSender
  readonly #parts: UpstreamParts
  readonly #stop = new AbortController()
  readonly #watched = new Set<string>()
  #connection: Connection | undefined
  #era: Connection['era'] | undefined
  /** Undefined until the first attempt to connect has ended. */
  #state: State | undefined
  /** The reason that callers see. */
  #shownReason = ''
  #since: number
  #downSince: number
  /** The last error of the list connection. */
  #lastError: { readonly at: number; readonly error: unknown } | undefined
  #nextVersionCheck = 0
  #subscriptions: Subscriptions | undefined
  #isRetired = false
  #closing: Promise<void> | undefined

  constructor(parts: UpstreamParts) {
    const { settings, host } = parts
    this.#parts = parts
    this.settings = settings
    this.#since = host.clock.now()
    this.#downSince = this.#since
    this.supervisor = createSupervisor({
      open: closed => this.#open(closed),
      onDemand: settings.http !== undefined,
      onState: state => this.#handleState(state),
      clock: host.clock,
    })
    this.calls = new CallSender(this, parts)
    this.lists = new ServedLists(this, parts, this.calls)
  }

  /** URIs that clients watch. */
  get watched(): ReadonlySet<string> {
    return this.#watched
  }
  get state(): State {
    return this.#state ?? (this.supervisor.state.status === 'connecting' ? 'connecting' : 'not connected')
  }
  /** True if calls can reach the server. In `needs login`, calls with per-user tokens still can. */
  get isUp(): boolean {
    return this.#state === 'up' || (this.#state === 'needs login' && this.#isPerCaller)
  }
  get held(): HeldCalls {
    return this.#parts.held
  }
  get signal(): AbortSignal {
    return this.#stop.signal
  }
  /** Describes state, protocol version and counts in one line. */
  describe(): string {
    if (this.#state === undefined) return this.state
    const { at, error: lastError } = this.#lastError ?? { at: this.#since, error: '' }
    const reason = visibleLine(shortReasonOf(lastError)).slice(0, MAX_REASON)
    if (this.#state !== 'up') {
      const error = at === this.#since ? '' : `; last error at ${isoTime(at)}`
      return `${this.#state} since ${isoTime(this.#since)}${error}: ${reason}`
    }
    const { revision, server } = this.#connection ?? {}
    const counts = countsText(this.#counts)
    const withheld = this.lists.withheld.size === 0 ? '' : `, ${this.lists.withheld.size} withheld`
    const error = this.lists.hasListError ? `; the lists could not be read at ${isoTime(at)}: ${reason}` : ''
    return `up, ${visibleLine(`${server?.name ?? 'unnamed'} ${server?.version ?? ''}`)} (${revision}), ${counts}${withheld}${error}`
  }

  /** Numbers of served items. */
  get #counts() {
    const items = this.#parts.host.services.itemsIn(this.settings.name)
    const served = items.filter(({ kind, key }) => kind !== 'tools' || this.lists.withheldReason(key) === undefined)
    const count = (wanted: (typeof items)[number]['kind']) => served.filter(({ kind }) => kind === wanted).length
    return { tools: count('tools'), resources: count('resources'), prompts: count('prompts') }
  }

  get report(): UpstreamState {
    const { name, http, command } = this.settings
    const { revision, era, server } = this.#connection ?? {}
    const { state } = this.supervisor
    return {
      name,
      transport: http ? 'http' : 'stdio',
      target: http ? redactUrl(http.url) : (command?.command ?? ''),
      state: this.state,
      since: this.#since,
      ...('nextAttempt' in state && { nextAttempt: state.nextAttempt }),
      ...(this.#lastError && { lastError: { at: this.#lastError.at, reason: reasonOf(this.#lastError.error) } }),
      ...(server?.name !== undefined && { server: visibleLine(`${server.name} ${server.version ?? ''}`.trim()) }),
      ...(revision !== undefined && { revision }),
      ...(era !== undefined && { era }),
      ...this.#counts,
      withheld: [...this.lists.withheld],
      differences: this.lists.differences,
      warnings: this.#warnings,
      sessions: this.calls.sessions.size,
      activeCalls: this.calls.queue.running,
      queuedCalls: this.calls.queue.waiting,
      heldCalls: this.held.size,
    }
  }

  get #warnings(): UpstreamState['warnings'] {
    return [
      ...(this.#state === undefined || this.#state === 'up' || this.#isServedWithToken ? [] : ['MH2942' as const]),
      ...this.lists.warnings,
      ...(this.calls.sessions.hasLostSession ? ['MH2959' as const] : []),
    ]
  }

  recordError(error: unknown, at = this.#parts.host.clock.now()): string {
    this.#lastError = { at, error }
    return reasonOf(error)
  }

  get outageStart(): string {
    const isDown = this.#state === 'down' || this.#state === 'crash loop'
    return isoTime(isDown ? this.#downSince : this.#parts.host.clock.now())
  }

  unavailable(reason = this.#shownReason): Error {
    return unavailableError(this.settings.name, isoTime(this.#downSince), reason)
  }

  /** Returns `describe`, or the origin of the lists that are served until the first connection. */
  explain(): string {
    if (this.#state !== undefined) return this.describe()
    const accepted = 'its accepted tools and prompts are shown; `mcp-host diff --connect` shows which are withheld'
    if (this.lists.isAccepted) return `not connected by this command: ${accepted}`
    const fix = `run \`mcp-host accept ${this.settings.name}\` to add them to the lock file`
    return `not connected by this command: its tools are unknown; ${fix}`
  }

  /** Compares the lists with another entry of the lock file. Returns the changes to report. */
  setLockEntry(accepted: LockEntry | undefined): string[] {
    const changes = this.lists.setLockEntry(accepted)
    if (!this.lists.isRead && (this.settings.whenDown !== 'hide' || this.#isServedWithToken)) this.lists.serveAccepted()
    return changes
  }

  /** Replaces the previous instance. Serves its lists until the first read, if it needs no restart and has the same target. */
  takeOver(previous: Upstream, needsRestart: boolean, onClosed: () => void): void {
    const targetOf = ({ http, command }: ServerSettings) => [http?.url, command]
    const keepsLists = !needsRestart && isDeepStrictEqual(targetOf(this.settings), targetOf(previous.settings))
    const isShown = previous.#state === 'up' || this.settings.whenDown !== 'hide'
    previous.#retire(onClosed)
    this.lists.takeOver(previous.lists, keepsLists && isShown)
  }

  /** Ends this instance after `callTimeout`. With calls in progress, it ends after the last one, or after `maxCallTime`. */
  #retire(onClosed: () => void): void {
    const { clock } = this.#parts.host
    const { callTimeout, maxCallTime } = this.settings
    this.#isRetired = true
    this.lists.stop()
    this.#endSubscriptions()
    const close = () => void this.close().then(onClosed, onClosed)
    // Calls that have just started are not counted yet.
    const closeWhenIdle = () => {
      if (this.calls.isIdle) return close()
      this.calls.onIdle(close)
      if (maxCallTime > 0) clock.setTimeout(close, Math.max(0, maxCallTime - callTimeout)).unref()
    }
    clock.setTimeout(closeWhenIdle, callTimeout).unref()
  }

  /** True after the server was replaced or closed. */
  get #isInactive(): boolean {
    return this.#isRetired || this.signal.aborted
  }

  /** Connects and reads the lists. Rejects with the reason. */
  async start(): Promise<void> {
    await this.supervisor.get()
  }

  /** Connects now if the server is down. Returns true if a connection attempt is in progress. */
  retry(): boolean {
    return this.supervisor.retry()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close() {
    this.#stop.abort()
    this.lists.stop()
    this.#endSubscriptions()
    await Promise.all([this.calls.sessions.close(), this.supervisor.close()])
    await this.#parts.targets.close()
  }

  #endSubscriptions() {
    this.#subscriptions?.end()
    this.#subscriptions = undefined
  }

  #handleState(state: SupervisorState) {
    if (state.status === 'up') return this.#setState('up', state.since)
    if (state.status !== 'down' && state.status !== 'crash loop') return
    this.#disconnect()
    const { error, since, failedAt } = state
    this.#downSince = since
    this.#shownReason = reasonText(error)
    if (isLoginNeeded(error)) this.#parts.targets.invalidateToken()
    this.recordError(error, failedAt)
    this.#setState(isLoginNeeded(error) ? 'needs login' : state.status, failedAt, error)
    const isServed = this.#isPerCaller && isLoginNeeded(error)
    if (this.settings.whenDown === 'hide' && !this.#isRetired && !isServed) this.#parts.toolset.replace([])
  }

  #setState(state: State, now: number, error?: Error) {
    // A server that was up has connected again because of `checkVersion`.
    if (this.#state === state && state !== 'up') return
    this.#state = state
    this.#since = now
    const { log } = this.#parts.host
    const { name } = this.settings
    const fields = { upstream: name, state }
    if (state === 'up')
      log.info({ code: 'MH2941', ...fields, server: this.describe() }, 'connected to an upstream server')
    else if (this.#isServedWithToken)
      log.info(
        { code: 'MH2942', ...fields, reason: reasonOf(error) },
        'an upstream server requires a token for its lists',
      )
    else {
      const isAcceptable = state === 'needs login' && this.#isPerCaller
      const fix = isAcceptable ? `run \`mcp-host accept ${name} --token TOKEN\`, then reload` : FIX_DOWN
      log.warn({ code: 'MH2942', ...fields, reason: shortReasonOf(error), fix }, 'an upstream server is not available')
    }
  }

  /** True if the accepted tools are served, and calls use the tokens of users. */
  get #isServedWithToken(): boolean {
    return this.#state === 'needs login' && this.#isPerCaller && this.lists.isAccepted
  }

  #connectOptions(options: Partial<ConnectOptions>): ConnectOptions {
    const { host, settings } = this.#parts
    return {
      client: { name: host.config.server.name, version: host.config.server.version },
      connectTimeout: settings.connectTimeout,
      maxMessage: Math.max(settings.maxResult, MAX_TEXT),
      ...(settings.revision !== undefined && { revision: settings.revision }),
      ...(settings.revision === undefined && this.#era !== undefined && { era: this.#era }),
      onOutput: line =>
        host.log.info({ code: 'MH2946', upstream: settings.name, line }, 'output of an upstream server'),
      onDebug: note => host.log.debug({ upstream: settings.name, note }, 'connection of an upstream server'),
      ...options,
    }
  }

  connect(target: Target, options: Partial<ConnectOptions>): Promise<Connection> {
    return connect(target, this.#connectOptions(options))
  }

  async #open(closed: (error: RemoteError) => void): Promise<Connection> {
    if (this.#state !== undefined) this.#parts.countReconnection()
    const target = await this.#parts.targets.target()
    const onNotification = (notification: ServerNotification) => this.handleNotification(notification)
    const options = {
      capabilities: listCapabilities(this.settings),
      onNotification,
      onReopened: () => this.#handleReopened(),
      onClosed: closed,
      signal: this.signal,
    }
    // Uses the last era for one attempt. After a failure, the next attempt detects the era again.
    const era = this.settings.revision === undefined ? this.#era : undefined
    this.#era = undefined
    const connection = await connect(target, {
      ...this.#connectOptions(options),
      ...(era !== undefined && { era }),
    }).catch((error: unknown) => {
      // The process exited. Try the other era next: detection can start the program twice per attempt.
      const isEnded = this.settings.command !== undefined && error instanceof RemoteError && error.reason === 'lost'
      if (isEnded && this.settings.revision === undefined) this.#era = era === 'legacy' ? 'modern' : 'legacy'
      throw error
    })
    this.#era = connection.era
    try {
      this.#connection = connection
      await this.lists.attach(connection)
    } catch (error) {
      this.#connection = undefined
      this.lists.detach()
      await connection.close()
      throw error
    }
    this.#subscribe(connection)
    return connection
  }

  #handleReopened() {
    this.lists.requestRefresh()
    this.#subscriptions?.reset()
  }

  /** The connection for lists has ended. */
  #disconnect() {
    this.#connection = undefined
    this.lists.detach()
    this.#endSubscriptions()
  }

  handleNotification({ method, params, owner }: ServerNotification): void {
    if (method === 'notifications/message' && owner instanceof UpstreamRequest) owner.log(params)
    if (method.endsWith('/list_changed')) this.lists.requestRefresh()
    const { uri } = params
    if (method === 'notifications/resources/updated' && typeof uri === 'string' && !this.#isInactive)
      this.#reportUpdate(uri)
  }

  /** `uri`: the URI at the server. */
  #reportUpdate(uri: string) {
    const ownUri = routeUri(this.settings, uri)
    if (this.#watched.has(ownUri)) this.#parts.host.runtime.resourceUpdated(ownUri)
  }

  /** An HTTP connection does not end by itself when its server stops. */
  reportUnreachable(error: unknown): void {
    if (error instanceof RemoteError && error.reason === 'unreachable') this.supervisor.lost(error)
  }

  reconnect(error: RemoteError, connection = this.#connection): void {
    if (connection !== this.#connection) return
    this.#era = undefined
    this.supervisor.lost(error)
    this.supervisor.retry()
  }

  #subscribe(connection: Connection) {
    if (this.#isInactive) return
    const { clock, log } = this.#parts.host
    const { name } = this.settings
    const subscriptions = createSubscriptions({
      clock,
      connection,
      onConfirmed: uris => {
        for (const uri of uris) this.#reportUpdate(uri)
      },
      onMissed: () => this.lists.requestRefresh(),
      onRefused: (error, uris) =>
        log.warn(
          { code: 'MH2951', upstream: name, reason: reasonOf(error), uris },
          'an upstream server refused a subscription: some changes are not reported',
        ),
    })
    this.#subscriptions = subscriptions
    for (const uri of this.#watched) this.#updateSubscription(uri, true)
  }

  #updateSubscription(watched: string, isWatched: boolean) {
    const uri = serverUri(this.settings, watched)
    if (uri === undefined) return
    if (isWatched) this.#subscriptions?.watch(uri)
    else this.#subscriptions?.unwatch(uri)
  }

  /** Called when the first client starts, or the last client stops, watching a resource. */
  watch(uri: string, isWatched: boolean) {
    if (isWatched) this.#watched.add(uri)
    else if (!this.#watched.delete(uri)) return
    this.#updateSubscription(uri, isWatched)
  }

  async checkVersion({ server: { name, version } }: Connection): Promise<void> {
    const { clock } = this.#parts.host
    try {
      const { server: listed } = await this.supervisor.get()
      if (name === listed.name && version === listed.version) return
      // Some programs report another version in each process.
      if (clock.monotonic() < this.#nextVersionCheck) return
      this.#nextVersionCheck = clock.monotonic() + VERSION_CHECK_INTERVAL
      this.#disconnect()
      await this.supervisor.restart()
    } catch (error) {
      throw this.unavailable(reasonText(error))
    }
  }

  get #isPerCaller(): boolean {
    return isPerCaller(this.settings.http?.auth)
  }
}
