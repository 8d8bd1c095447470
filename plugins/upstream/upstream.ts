// One upstream server: its own connection for lists, its state, reconnection, and the sessions of callers.
import { isDeepStrictEqual } from 'node:util'
import { loginExpired, redactUrl } from '../../core/auth.ts'
import { type CallContext, type CallToolResult, type Definition, type JsonSchema, ToolError } from '../../core/index.ts'
import { CallQueue, type InternalHost } from '../../core/internal.ts'
import type { Call, ServedToolset, Timer } from '../../core/plugin.ts'
import { callOf, contextCancellation, InputRequired, type LinkedList, roundOf } from '../../core/transport.ts'
import {
  type Connection,
  type ConnectOptions,
  connect,
  operatorText,
  RemoteError,
  type RequestOptions,
  type ServerNotification,
} from '../../remote/index.ts'
import { isLoginRound, isPerCaller, readStepUp, withLogin } from '../families/credentials/index.ts'
import { countsText, visibleLine, visibleText } from '../families/texts/index.ts'
import {
  type Difference,
  problemsOf,
  type RecordUpstreamCall,
  type UpstreamState,
} from '../families/upstream-calls/index.ts'
import { capabilitiesFor, cleanResult, listCapabilities, paramsFor, readInputRequests } from './calls.ts'
import { changedError, createDefiner, type UpstreamClient } from './definitions.ts'
import {
  isLoginNeeded,
  isNotFound,
  isSessionLost,
  isUnauthorized,
  isUnknownItem,
  isVersionRefused,
  reasonText,
  toCallError,
  unavailableError,
} from './failures.ts'
import { ActiveCall, CallSlot, type HeldCalls } from './held.ts'
import { MAX_TEXT, readLists, type Snapshot } from './lists.ts'
import { type LockEntry, listsOf, reviewLists } from './lock-entry.ts'
import { invalidNames, isIncluded, isServed, labelOf, toolName, unmatchedFilters } from './names.ts'
import type { NodeRelay, RelayResult } from './node-relay.ts'
import type { SessionLimit } from './session-limit.ts'
import { createSessions, type ServerSession, type SessionEvents, type Sessions } from './sessions.ts'
import type { ServerSettings } from './settings.ts'
import { createSubscriptions, type Subscriptions } from './subscriptions.ts'
import { createSupervisor, type Supervisor, type SupervisorState } from './supervisor.ts'
import type { CallCredentials, Targets, UserHeaders } from './targets.ts'
import { ContextClient, type Json, type RequestClient, UpstreamRequest } from './upstream-request.ts'
import { routeUri, serverUri } from './uris.ts'

type State = UpstreamState['state']

/** Minimum time between two reads of the lists, milliseconds. */
const REFRESH_INTERVAL = 1_000
const JITTER = 0.1
const MAX_LOGGED = 5
/** Maximum withheld items that are named in the log. */
const MAX_NAMED_ITEMS = 100
/** Pause between two reads of the lists, as a multiple of the duration of the last read. */
const REFRESH_PAUSE = 10
/** Minimum time between two restarts because of a changed version, milliseconds. */
const VERSION_CHECK_INTERVAL = 60_000
/** Maximum bytes of requests to a client, which are part of `requestState`. */
const MAX_INPUT_REQUEST_BYTES = 48_000

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
  countRestart(): void
}

/** Returns the reason for the log and the operator. */
const reasonOf = (error: unknown): string => visibleText(operatorText(error))

const ERROR_LINE = /^\S*(?:Error|Exception)\b/

/** Shortens a long output of a program, such as a stack trace, to its error or last line. */
function shortReason(reason: string): string {
  const [message = '', printed = ''] = reason.split('; it printed: ')
  const lines = printed.split('\n')
  if (lines.length < 3) return reason
  return `${message}; it printed: ${lines.find(line => ERROR_LINE.test(line)) ?? lines.at(-1)} (the log has all lines: MH2946)`
}

const FIX_DOWN =
  'correct `url`, `command` or the credentials, or start the server; a reload (SIGHUP) or restart retries at once'

const isoTime = (at: number): string => new Date(at).toISOString()

interface RoundState {
  /** The id of a held call, and the node that runs it. */
  readonly held?: string
  readonly node?: string
  /** The `requestState` of the server. */
  readonly upstream?: unknown
}

/** An upstream server. */
export class Upstream implements UpstreamClient {
  readonly settings: ServerSettings
  readonly #parts: UpstreamParts
  readonly #sessions: Sessions
  readonly #define: ReturnType<typeof createDefiner>
  readonly #supervisor: Supervisor
  readonly #queue: CallQueue
  readonly #stop = new AbortController()
  readonly #watched = new Set<string>()
  /** Client sessions whose first call with an upstream session has been checked. */
  readonly #checkedSessions = new WeakSet<NonNullable<Call['session']>>()
  /** Listed tools that were missing in a call with the token of a user. */
  readonly #loggedUnknown = new Set<string>()
  /** Output schemas of tools whose results do not match. */
  readonly #loggedMismatches = new WeakSet<JsonSchema>()
  readonly #credentials = new WeakMap<Call, CallCredentials>()
  /** The headers of each session's last call. */
  readonly #sessionHeaders = new WeakMap<Connection, { current: UserHeaders }>()
  #connection: Connection | undefined
  #era: Connection['era'] | undefined
  /** Undefined until the first attempt to connect has ended. */
  #state: State | undefined
  /** The reason that callers see. */
  #shownReason = ''
  #since: number
  #downSince: number
  /** The last error of the list connection. */
  #lastError: UpstreamState['lastError']
  #refreshTimer: Timer | undefined
  #nextVersionCheck = 0
  #refreshing: Promise<void> | undefined
  /** The earliest time at which a notification can cause a refresh. */
  #refreshFrom = Number.NEGATIVE_INFINITY
  #isStale = false
  #subscriptions: Subscriptions | undefined
  #snapshot: Snapshot | undefined
  #canComplete = false
  #accepted: LockEntry | undefined
  #isRetired = false
  #closing: Promise<void> | undefined
  /** Calls in progress, including held calls. */
  #active = 0
  #whenIdle: (() => void) | undefined
  #loggedOmitted = ''
  #hasListError = false
  #isRefused = false
  /** True from the end of a session until the next one opens. */
  #hasLostSession = false
  #loggedUnmatched = ''
  #loggedInvalidNames = ''
  #changedTools: ReadonlyMap<string, string> = new Map()
  #instructions: string | undefined
  #withheld: ReadonlyMap<string, string> = new Map()
  #differences: readonly Difference[] = []

  constructor(parts: UpstreamParts) {
    const { settings, host } = parts
    this.#parts = parts
    this.settings = settings
    this.#since = host.clock.now()
    this.#downSince = this.#since
    this.#accepted = parts.accepted
    this.#define = createDefiner(settings, this)
    const { name, concurrency, callTimeout } = settings
    const limits = { tool: name, most: concurrency, timeout: callTimeout, clock: host.clock }
    this.#queue = new CallQueue(limits, parts.busy, () => undefined)
    this.#supervisor = createSupervisor({
      open: closed => this.#open(closed),
      onDemand: settings.http !== undefined,
      onState: state => this.#handleState(state),
      clock: host.clock,
    })
    this.#sessions = createSessions({
      settings,
      clock: host.clock,
      processes: parts.processes,
      isLocal: parts.isLocal,
      open: (...opened) => this.#openSession(...opened),
      onNotification: notification => this.#handleNotification(notification),
    })
  }

  /** URIs that clients watch. */
  get watched(): ReadonlySet<string> {
    return this.#watched
  }
  get state(): State {
    return this.#state ?? (this.#supervisor.state.status === 'connecting' ? 'connecting' : 'not connected')
  }
  /** True if calls can reach the server. In `needs login`, calls with per-user tokens still can. */
  get isUp(): boolean {
    return this.#state === 'up' || (this.#state === 'needs login' && this.#isPerCaller)
  }
  get held(): HeldCalls {
    return this.#parts.held
  }
  get sessions(): number {
    return this.#sessions.size
  }
  /** Withheld items with the reasons. */
  get withheld(): ReadonlyMap<string, string> {
    return this.#withheld
  }
  /** Returns the reason for a withheld tool, by its name on the route. False for other tools. */
  isWithheld(name: string): string | false {
    return this.#changedTools.get(name) ?? false
  }
  /** The instructions of the server for models, if the options pass them on. */
  get instructions(): string | undefined {
    const { name, prefix, instructions } = this.settings
    const accepted = instructions === 'append' ? this.#accepted?.instructions : undefined
    const text = this.#snapshot ? this.#instructions : accepted
    if (text === undefined) return undefined
    const names = prefix === '' ? '' : `, whose tool names begin with "${prefix}"`
    return `Instructions of the server "${name}"${names}:\n${text}`
  }
  /** Describes state, protocol version and counts in one line. */
  describe(): string {
    if (this.#state === undefined) return this.state
    if (this.#state !== 'up') {
      const { at = this.#since, reason = '' } = this.#lastError ?? {}
      const error = at === this.#since ? '' : `; last error at ${isoTime(at)}`
      return `${this.#state} since ${isoTime(this.#since)}${error}: ${shortReason(reason)}`
    }
    const { revision, server } = this.#connection ?? {}
    const counts = countsText(this.#counts)
    const withheld = this.#withheld.size === 0 ? '' : `, ${this.#withheld.size} withheld`
    return `up, ${visibleLine(`${server?.name ?? 'unnamed'} ${server?.version ?? ''}`)} (${revision}), ${counts}${withheld}`
  }

  /** Numbers of served items. */
  get #counts() {
    const items = this.#parts.host.services.itemsIn(this.settings.name)
    const served = items.filter(({ kind, key }) => kind !== 'tools' || this.isWithheld(key) === false)
    const count = (wanted: (typeof items)[number]['kind']) => served.filter(({ kind }) => kind === wanted).length
    return { tools: count('tools'), resources: count('resources'), prompts: count('prompts') }
  }

  get report(): UpstreamState {
    const { name, http, command } = this.settings
    const { revision, era, server } = this.#connection ?? {}
    const { state } = this.#supervisor
    return {
      name,
      transport: http ? 'http' : 'stdio',
      target: http ? redactUrl(http.url) : (command?.command ?? ''),
      state: this.state,
      since: this.#since,
      ...('nextAttempt' in state && { nextAttempt: state.nextAttempt }),
      ...(this.#lastError && { lastError: this.#lastError }),
      ...(server?.name !== undefined && { server: visibleLine(`${server.name} ${server.version ?? ''}`.trim()) }),
      ...(revision !== undefined && { revision }),
      ...(era !== undefined && { era }),
      ...this.#counts,
      withheld: [...this.#withheld],
      differences: this.#differences,
      warnings: this.#warnings,
      sessions: this.sessions,
      activeCalls: this.#queue.running,
      queuedCalls: this.#queue.waiting,
      heldCalls: this.held.size,
    }
  }

  get #warnings(): UpstreamState['warnings'] {
    return [
      ...(this.#state === undefined || this.#state === 'up' || this.#isServedWithToken ? [] : ['MH2942' as const]),
      ...(this.#hasListError ? ['MH2944' as const] : []),
      ...(this.#loggedOmitted === '' ? [] : ['MH2945' as const]),
      ...(this.#loggedUnmatched === '' ? [] : ['MH2949' as const]),
      ...(this.#hasLostSession ? ['MH2959' as const] : []),
    ]
  }

  /** Keeps the error for operators, and returns its reason. */
  #recordError(error: unknown, at = this.#parts.host.clock.now()): string {
    const reason = reasonOf(error)
    this.#lastError = { at, reason }
    return reason
  }

  /** The time for errors of calls: the start of the outage, or the current time without an outage. */
  get #outageStart() {
    const isDown = this.#state === 'down' || this.#state === 'crash loop'
    return isoTime(isDown ? this.#downSince : this.#parts.host.clock.now())
  }

  /** Returns `describe`, or the origin of the lists that are served until the first connection. */
  explain(): string {
    if (this.#state !== undefined) return this.describe()
    const accepted = 'its accepted tools and prompts are shown; `mcp-host diff --connect` shows which are withheld'
    if (this.#accepted) return `not connected by this command: ${accepted}`
    const fix = `run \`mcp-host accept ${this.settings.name}\` to add them to the lock file`
    return `not connected by this command: its tools are unknown; ${fix}`
  }

  /** True if the process must be restarted, because its lists differ from the lock file: `accept` read them from a new process. */
  needsRestart(accepted: LockEntry | undefined): boolean {
    if (!this.settings.command || !this.#snapshot || !accepted) return false
    const isNewEntry = !isDeepStrictEqual(accepted, this.#accepted)
    const { differences } = reviewLists(this.#snapshot, accepted, this.settings)
    // Programs can add tools while they run, so a new item that is not withheld needs no restart.
    return differences.some(({ kind, isWithheld }) => isWithheld || (isNewEntry && kind !== 'new'))
  }

  /** Compares the lists with another entry of the lock file. Returns what changed for clients. */
  setLockEntry(accepted: LockEntry | undefined): string[] {
    const previous = this.#withheld
    this.#accepted = accepted
    if (this.#snapshot) this.#serve(this.#snapshot, this.#canComplete)
    if (this.#differences.length > 0) this.#requestRefresh()
    if (!this.#snapshot && (this.settings.whenDown !== 'hide' || this.#isServedWithToken))
      this.#parts.toolset.replace(this.acceptedDefinitions())
    const changes = [
      ['no longer withheld', [...previous.keys()].filter(label => !this.#withheld.has(label))],
      ['now withheld', [...this.#withheld.keys()].filter(label => !previous.has(label))],
    ] as const
    return changes.flatMap(([what, labels]) =>
      labels.length === 0 ? [] : `server "${this.settings.name}": ${countsText({ items: labels.length })} ${what}`,
    )
  }

  /** Returns definitions of the lock file, which are served until the server is connected. */
  acceptedDefinitions(): readonly Definition[] {
    return this.#accepted ? this.#define(listsOf(this.#accepted), this.#accepted.completions).definitions : []
  }

  /** Replaces the previous instance. Serves its lists until the first read, if it needs no restart and has the same target. */
  takeOver(previous: Upstream, needsRestart: boolean, onClosed: () => void): void {
    const targetOf = ({ http, command }: ServerSettings) => [http?.url, command]
    const keepsLists = !needsRestart && isDeepStrictEqual(targetOf(this.settings), targetOf(previous.settings))
    const isShown = previous.#state === 'up' || this.settings.whenDown !== 'hide'
    previous.#retire(onClosed)
    this.#canComplete = previous.#canComplete
    if (keepsLists && isShown) this.#snapshot = previous.#snapshot
    if (this.#snapshot) this.#serve(this.#snapshot, this.#canComplete)
    else this.#parts.toolset.replace(this.acceptedDefinitions())
  }

  /** Ends this version after `callTimeout`. With calls in progress, it ends after the last one, or after `maxCallTime`. */
  #retire(onClosed: () => void): void {
    const { clock } = this.#parts.host
    const { callTimeout, maxCallTime } = this.settings
    this.#isRetired = true
    clock.clear(this.#refreshTimer)
    this.#endSubscriptions()
    const close = () => void this.close().then(onClosed, onClosed)
    // Calls that have just started are not counted yet.
    const closeWhenIdle = () => {
      if (this.#active === 0) return close()
      this.#whenIdle = close
      if (maxCallTime > 0) clock.setTimeout(close, Math.max(0, maxCallTime - callTimeout)).unref()
    }
    clock.setTimeout(closeWhenIdle, callTimeout).unref()
  }

  #endCall() {
    if (--this.#active === 0) this.#whenIdle?.()
  }

  /** True if the lists no longer matter. */
  get #isInactive(): boolean {
    return this.#isRetired || this.#stop.signal.aborted
  }

  /** Connects and reads the lists. Rejects with the reason. */
  async start(): Promise<void> {
    await this.#supervisor.get()
  }

  /** Connects now if the server is down. Returns true if a connection attempt is in progress. */
  retry(): boolean {
    return this.#supervisor.retry()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close() {
    this.#stop.abort()
    const { clock } = this.#parts.host
    clock.clear(this.#refreshTimer)
    this.#endSubscriptions()
    await Promise.all([this.#sessions.close(), this.#supervisor.close()])
    await this.#parts.targets.close()
  }

  #endSubscriptions() {
    this.#subscriptions?.end()
    this.#subscriptions = undefined
  }

  #handleState(state: SupervisorState) {
    if (state.status === 'up') return this.#enter('up', state.since)
    if (state.status !== 'down' && state.status !== 'crash loop') return
    this.#connection = undefined
    this.#endSubscriptions()
    this.#parts.host.clock.clear(this.#refreshTimer)
    const { error, since, failedAt } = state
    this.#downSince = since
    this.#shownReason = reasonText(error)
    if (isLoginNeeded(error)) this.#parts.targets.invalidateToken()
    this.#enter(isLoginNeeded(error) ? 'needs login' : state.status, failedAt, this.#recordError(error, failedAt))
    const isServed = this.#isPerCaller && isLoginNeeded(error)
    if (this.settings.whenDown === 'hide' && !this.#isRetired && !isServed) this.#parts.toolset.replace([])
  }

  #enter(state: State, now: number, reason = '') {
    // A server that was up has connected again because of `#checkVersion`.
    if (this.#state === state && state !== 'up') return
    this.#state = state
    this.#since = now
    const { log } = this.#parts.host
    const { name } = this.settings
    const fields = { upstream: name, state }
    if (state === 'up')
      log.info({ code: 'MH2941', ...fields, server: this.describe() }, 'connected to an upstream server')
    else if (this.#isServedWithToken)
      log.info({ code: 'MH2942', ...fields, reason }, 'an upstream server requires a token for its lists')
    else {
      const isAcceptable = state === 'needs login' && this.#isPerCaller
      const fix = isAcceptable ? `run \`mcp-host accept ${name} --token TOKEN\`, then reload` : FIX_DOWN
      log.warn({ code: 'MH2942', ...fields, reason: shortReason(reason), fix }, 'an upstream server is not available')
    }
  }

  /** True if the accepted tools are served, and calls use the tokens of users. */
  get #isServedWithToken(): boolean {
    return this.#state === 'needs login' && this.#isPerCaller && this.#accepted !== undefined
  }

  #options(events: Partial<ConnectOptions>): ConnectOptions {
    const { host, settings } = this.#parts
    return {
      client: { name: host.config.server.name, version: host.config.server.version },
      connectTimeout: settings.connectTimeout,
      maxMessage: Math.max(settings.maxResult, MAX_TEXT),
      ...(settings.revision !== undefined && { revision: settings.revision }),
      ...(settings.revision === undefined && this.#era !== undefined && { era: this.#era }),
      onStderr: line =>
        host.log.info({ code: 'MH2946', upstream: settings.name, stderr: line }, 'output of an upstream server'),
      onDebug: note => host.log.debug({ upstream: settings.name, note }, 'connection of an upstream server'),
      ...events,
    }
  }

  async #open(closed: (error: RemoteError) => void): Promise<Connection> {
    if (this.#state !== undefined) this.#parts.countRestart()
    const target = await this.#parts.targets.target()
    const onNotification = (notification: ServerNotification) => this.#handleNotification(notification)
    const events = {
      capabilities: listCapabilities(this.settings),
      onNotification,
      onReopened: () => this.#handleReopened(),
      onClosed: closed,
      signal: this.#stop.signal,
    }
    // The server may have changed its era since the last connection.
    const era = this.#era
    this.#era = undefined
    const connection = await connect(target, { ...this.#options(events), ...(era !== undefined && { era }) }).catch(
      (error: unknown) => {
        // The process exited. Try the other era next: detection can start the program twice per attempt.
        const isEnded = this.settings.command !== undefined && error instanceof RemoteError && error.reason === 'lost'
        if (isEnded) this.#era = era === 'legacy' ? 'modern' : 'legacy'
        throw error
      },
    )
    this.#era = connection.era
    try {
      this.#connection = connection
      await this.#readAndServe()
    } catch (error) {
      this.#connection = undefined
      await connection.close()
      throw error
    }
    this.#subscribe(connection)
    this.#schedulePolling()
    return connection
  }

  #handleReopened() {
    this.#requestRefresh()
    this.#subscriptions?.reset()
  }

  #handleNotification({ method, params, owner }: ServerNotification) {
    if (method === 'notifications/message' && owner instanceof UpstreamRequest) owner.log(params)
    if (method.endsWith('/list_changed')) this.#requestRefresh()
    const { uri } = params
    if (method === 'notifications/resources/updated' && typeof uri === 'string' && !this.#isInactive) this.#updated(uri)
  }

  /** `uri`: the URI at the server. */
  #updated(uri: string) {
    const ownUri = routeUri(this.settings, uri)
    if (this.#watched.has(ownUri)) this.#parts.host.runtime.resourceUpdated(ownUri)
  }

  /** Reads the lists again: at most once a second, and after a pause of ten times the last read. */
  #requestRefresh() {
    if (this.#isStale || this.#isInactive) return
    this.#isStale = true
    if (!this.#refreshing) this.#delayRefresh()
  }

  #delayRefresh() {
    const { clock } = this.#parts.host
    const delay = Math.max(0, this.#refreshFrom - clock.monotonic())
    clock.setTimeout(() => this.#runRefresh(), delay).unref()
  }

  #runRefresh() {
    if (this.#isInactive) return
    this.#refreshing ??= this.#readAndServe()
      .catch(error => {
        this.#reportUnreachable(error)
        this.#logListError(error)
        if (isVersionRefused(error)) this.#handleRefusal(error)
      })
      .finally(() => {
        this.#refreshing = undefined
        this.#schedulePolling()
        if (this.#isStale) this.#delayRefresh()
      })
  }

  /** An HTTP connection does not end by itself when its server stops. */
  #reportUnreachable(error: unknown) {
    if (error instanceof RemoteError && error.reason === 'unreachable') this.#supervisor.lost(error)
  }

  /** Reconnects after two consecutive refusals: a proxy can refuse a single request while other calls run. */
  #handleRefusal(error: RemoteError) {
    this.#isRefused = !this.#isRefused && !isSessionLost(error)
    if (this.#isRefused) this.#requestRefresh()
    else this.#reconnect(error)
  }

  /** Connects again, and detects the protocol version again. */
  #reconnect(error: RemoteError) {
    this.#era = undefined
    this.#supervisor.lost(error)
    this.#supervisor.retry()
  }

  /** Ends a session that the server has lost. The next call opens another one. */
  #dropSession({ connection, close }: ServerSession, error: RemoteError) {
    if (close) close()
    else if (connection === this.#connection) this.#reconnect(error)
  }

  #schedulePolling() {
    const { clock } = this.#parts.host
    const { refresh } = this.settings
    clock.clear(this.#refreshTimer)
    if (refresh === 0 || !this.#connection || this.#isInactive) return
    const delay = refresh * (1 - JITTER + 2 * JITTER * Math.random())
    this.#refreshTimer = clock.setTimeout(() => this.#runRefresh(), delay).unref()
  }

  #logListError(error: unknown) {
    if (this.#stop.signal.aborted) return
    this.#hasListError = true
    const fix = 'check the server; the host reads the lists again after a change notification or the interval `refresh`'
    const fields = { upstream: this.settings.name, reason: this.#recordError(error), fix }
    this.#parts.host.log.warn(
      { code: 'MH2944', ...fields },
      'cannot read the lists of an upstream server: the previous lists stay active',
    )
  }

  async #readAndServe() {
    this.#isStale = false
    const connection = this.#connection
    if (!connection) return
    const { clock } = this.#parts.host
    const startedAt = clock.monotonic()
    this.#refreshFrom = startedAt + REFRESH_INTERVAL
    try {
      await this.#readLists(connection)
    } finally {
      const now = clock.monotonic()
      this.#refreshFrom = Math.max(this.#refreshFrom, now + REFRESH_PAUSE * (now - startedAt))
    }
  }

  async #readLists(connection: Connection) {
    const { maxTools, callTimeout } = this.settings
    const snapshot = await readLists(connection, { maxTools, timeout: callTimeout, signal: this.#stop.signal })
    if (this.#connection !== connection) return
    this.#snapshot = snapshot
    this.#hasListError = this.#isRefused = false
    this.#canComplete = connection.capabilities.completions !== undefined
    this.#serve(snapshot, this.#canComplete)
    this.#warnOfFilters(snapshot)
    this.#warnOfNames(snapshot)
  }

  /** Warns once per change: a model or user sees the changed names. */
  #warnOfNames({ tools, prompts }: Snapshot) {
    const { name: upstream, prefix, overrides } = this.settings
    const own = tools.map(({ name }) => String(name)).filter(name => isIncluded(this.settings, name))
    const kept = own.filter(name => !Object.hasOwn(overrides, name) || overrides[name]?.name === undefined)
    const served = prompts.map(({ name }) => String(name)).filter(name => isServed(this.settings.prompts, name))
    const names = invalidNames(prefix, [...kept, ...served]).map(visibleLine)
    const text = names.join()
    if (text === this.#loggedInvalidNames) return
    this.#loggedInvalidNames = text
    if (names.length === 0) return
    const fix = 'set a shorter `prefix`, or `name` in `overrides`'
    const fields = { upstream, names: names.slice(0, MAX_LOGGED), fix }
    this.#parts.host.log.warn({ code: 'MH2961', ...fields }, 'names of an upstream server were shortened or changed')
  }

  /** Warns once per change: because of a misspelled name in `exclude`, the tool would be served. */
  #warnOfFilters({ tools }: Snapshot) {
    const unmatched = unmatchedFilters(
      this.settings,
      tools.map(({ name }) => String(name)),
    ).slice(0, MAX_LOGGED)
    const text = unmatched.join()
    if (text === this.#loggedUnmatched) return
    this.#loggedUnmatched = text
    if (unmatched.length === 0) return
    const fix = 'correct `include`, `exclude` or `overrides`: they use upstream names without the prefix'
    const fields = { upstream: this.settings.name, unmatched, fix }
    this.#parts.host.log.warn({ code: 'MH2949', ...fields }, 'filters or overrides match no tool of an upstream server')
  }

  #serve(snapshot: Snapshot, canComplete: boolean) {
    if (this.#isRetired) return
    const { served, changedTools, withheld, differences } = reviewLists(snapshot, this.#accepted, this.settings)
    const { definitions, omitted } = this.#define(served, canComplete, changedTools)
    this.#withheld = withheld
    this.#differences = differences
    this.#instructions = served.instructions
    this.#changedTools = new Map(
      changedTools.map(name => [toolName(this.settings, name), withheld.get(labelOf('tool', name)) ?? '']),
    )
    this.#parts.toolset.replace(definitions)
    this.#logOmitted(new Map([...withheld, ...omitted]), [...withheld.keys()])
  }

  #logOmitted(omitted: ReadonlyMap<string, string>, withheld: readonly string[]) {
    const reasons = Object.fromEntries([...omitted].slice(0, MAX_LOGGED))
    const text = omitted.size === 0 ? '' : JSON.stringify([...omitted])
    if (text === this.#loggedOmitted) return
    this.#loggedOmitted = text
    const { name } = this.settings
    const { log } = this.#parts.host
    if (omitted.size === 0) {
      log.info({ code: 'MH2960', upstream: name }, 'all items of an upstream server are served again')
      return
    }
    const fix =
      withheld.length > 0
        ? `review with \`mcp-host accept ${name} --dry-run\`, run it without \`--dry-run\`, then reload`
        : 'see `reasons`'
    const fields = {
      upstream: name,
      fix,
      omitted: omitted.size,
      reasons,
      withheld: withheld.slice(0, MAX_NAMED_ITEMS),
    }
    log.warn({ code: 'MH2945', ...fields }, 'omitted some items of an upstream server')
  }

  #subscribe(connection: Connection) {
    if (this.#isInactive) return
    const { clock, log } = this.#parts.host
    const { name } = this.settings
    const subscriptions = createSubscriptions({
      clock,
      connection,
      onConfirmed: uris => {
        for (const uri of uris) this.#updated(uri)
      },
      onMissed: () => this.#requestRefresh(),
      onRefused: (error, uris) =>
        log.warn(
          { code: 'MH2951', upstream: name, reason: reasonOf(error), uris },
          'an upstream server refused a subscription: some changes are not reported',
        ),
    })
    this.#subscriptions = subscriptions
    for (const uri of this.#watched) this.#subscribeTo(uri, true)
  }

  #subscribeTo(watched: string, isWatched: boolean) {
    const uri = serverUri(this.settings, watched)
    if (uri === undefined) return
    if (isWatched) this.#subscriptions?.watch(uri)
    else this.#subscriptions?.unwatch(uri)
  }

  /** True if this server has a resource with this URI. */
  has(watched: string): boolean {
    const uri = serverUri(this.settings, watched)
    if (uri === undefined) return false
    const { resources = [], resourceTemplates = [] } = this.#snapshot ?? {}
    if (resources.some(item => item['uri'] === uri)) return true
    return resourceTemplates.some(({ uriTemplate }) => {
      const [start = ''] = String(uriTemplate).split('{')
      return start !== '' && uri.startsWith(start)
    })
  }

  /** Called when the first client starts, or the last client stops, watching a resource. */
  watch(uri: string, isWatched: boolean) {
    if (isWatched) this.#watched.add(uri)
    else if (!this.#watched.delete(uri)) return
    this.#subscribeTo(uri, isWatched)
  }

  async #openSession(call: Call, events: SessionEvents, signal: AbortSignal): Promise<Connection> {
    const headers = { current: this.#userHeaders(call) }
    const target = await this.#parts.targets.target(() => headers.current)
    signal.throwIfAborted()
    const capabilities = capabilitiesFor(this.settings, call.session ? call.client.capabilities : undefined)
    const { onRequest, onNotification } = events
    const onClosed = (error: RemoteError) => {
      this.#hasLostSession = true
      const fields = { upstream: this.settings.name, reason: reasonOf(error) }
      this.#parts.host.log.warn(
        { code: 'MH2959', ...fields },
        'a session at an upstream server ended: its state is lost',
      )
      events.onClosed()
    }
    const connection = await connect(
      target,
      this.#options({ capabilities, onRequest, onNotification, onClosed, signal }),
    )
    try {
      if (this.settings.command) await this.#checkVersion(connection)
      signal.throwIfAborted()
    } catch (error) {
      await connection.close()
      throw error
    }
    this.#hasLostSession = false
    this.#sessionHeaders.set(connection, headers)
    return connection
  }

  /** Reads the lists of a changed program from a new process, so that changed tools are withheld from the session, too. */
  async #checkVersion({ server: { name, version } }: Connection) {
    const { clock } = this.#parts.host
    try {
      const { server: listed } = await this.#supervisor.get()
      if (name === listed.name && version === listed.version) return
      // Some programs report another version in each process.
      if (clock.monotonic() < this.#nextVersionCheck) return
      this.#nextVersionCheck = clock.monotonic() + VERSION_CHECK_INTERVAL
      this.#connection = undefined
      clock.clear(this.#refreshTimer)
      this.#endSubscriptions()
      await this.#supervisor.restart()
    } catch (error) {
      throw unavailableError(this.settings.name, isoTime(this.#downSince), reasonText(error))
    }
  }

  get #isPerCaller(): boolean {
    return isPerCaller(this.settings.http?.auth)
  }

  /** True if all callers can share a connection: the server has no sessions, or the options allow it. */
  #isShared(connection: Connection): boolean {
    const { sessions, http } = this.settings
    if (sessions === 'shared') return true
    if (sessions !== 'auto') return false
    return connection.era === 'modern' || (http !== undefined && connection.sessionId === undefined)
  }

  async #keepCredentials(call: Call, authorized: ReturnType<Targets['authorize']>) {
    const credentials = await authorized
    if (credentials) this.#credentials.set(call, credentials)
  }

  /** Returns the connection for lists, if all callers share it and it is open. */
  #useSharedSession(): { readonly session: ServerSession; leave(): void } | undefined {
    const { state } = this.#supervisor
    if (state.status !== 'up' || !this.#isShared(state.connection)) return undefined
    return { session: { connection: state.connection, runs: undefined, logLevel: undefined }, leave: () => undefined }
  }

  async #useSession(call: Call): Promise<{ readonly session: ServerSession; leave(): void }> {
    // Calls do not need the list connection, which has no token.
    if (this.#isPerCaller && this.#state === 'needs login') return this.#useOwnSession(call)
    await this.#supervisor.get().catch(() => {
      throw unavailableError(this.settings.name, isoTime(this.#downSince), this.#shownReason)
    })
    return this.#useSharedSession() ?? this.#useOwnSession(call)
  }

  async #useOwnSession(call: Call) {
    const lease = await this.#sessions.enter(call)
    const headers = this.#sessionHeaders.get(lease.session.connection)
    if (headers) headers.current = this.#userHeaders(call)
    return lease
  }

  /** Warns a client whose session started on another node. */
  #warnOfOtherNode(ctx: CallContext, call: Call) {
    const { session } = call
    if (!session || this.#checkedSessions.has(session)) return
    this.#checkedSessions.add(session)
    const { name, sessions } = this.settings
    const isOwn = sessions === 'auto' || sessions === 'per-session'
    if (!isOwn || session.home === undefined || session.home === this.#parts.nodeRelay.nodeOf(call)) return
    ctx.log(
      'warning',
      `Another node now serves this client session, so a new session at the server "${name}" was opened. State of earlier calls may be missing.`,
    )
  }

  #capabilitiesOf({ asks, client }: Call) {
    return asks ? capabilitiesFor(this.settings, client.capabilities) : {}
  }

  /** Returns the forwarded headers and the token of the caller. */
  #userHeaders(call: Call): UserHeaders {
    const forwarded = this.#parts.targets.forwarded(call)
    const headers = this.#credentials.get(call)?.headers
    return headers ? { ...forwarded, ...headers } : forwarded
  }

  #requestOptions(call: Call, { connection }: ServerSession): RequestOptions {
    const { logLevel } = call
    const isModern = connection.era === 'modern'
    return {
      headers: this.#userHeaders(call),
      capabilities: isModern ? this.#capabilitiesOf(call) : undefined,
      logLevel: isModern ? logLevel : undefined,
    }
  }

  /** Requests the caller's log level from a legacy server. */
  #setLogLevel(call: Call, session: ServerSession) {
    const { connection } = session
    const { logLevel } = call
    if (connection.era === 'modern' || connection === this.#connection || !connection.capabilities.logging) return
    if (logLevel === undefined || session.logLevel === logLevel) return
    session.logLevel = logLevel
    connection.request('logging/setLevel', { level: logLevel }).catch(() => undefined)
  }

  async call(method: string, params: Json, ctx: CallContext, outputSchema?: JsonSchema): Promise<object> {
    const call = callOf(ctx)
    if (!call) throw new Error('the context is not one of a call')
    this.#active++
    try {
      const record = { name: this.settings.name, tool: params['name'] }
      return await this.#parts.record(call, record, async () => {
        const result = await withLogin(ctx, () => this.#call(method, params, ctx, call))
        return outputSchema ? this.#checkOutput(result, outputSchema, record.tool) : result
      })
    } catch (error) {
      this.#reportUnreachable(error)
      if (isUnknownItem(error)) this.#logUnknownTool(params['name'], error as Error)
      // If the lists are refused, too, the host connects again.
      else if (isVersionRefused(error)) this.#requestRefresh()
      // The resource does not exist, so there is no result.
      if (method === 'resources/read' && isNotFound(error)) return undefined as never
      throw this.#toCallerError(error, call)
    } finally {
      this.#endCall()
    }
  }

  /** Reads the lists again. With tokens of callers, a server can have a tool for some of them only. */
  #logUnknownTool(tool: unknown, { message }: Error) {
    this.#requestRefresh()
    if (!this.#isPerCaller || typeof tool !== 'string' || !message.includes(tool) || this.#loggedUnknown.has(tool))
      return
    this.#loggedUnknown.add(tool)
    this.#parts.host.log.warn(
      { code: 'MH2958', upstream: this.settings.name, upstreamTool: tool },
      'a listed tool does not exist for this user of an upstream server: lists are not per user',
    )
  }

  /** Replaces a result that does not match its schema with an error. Logs the first one of each definition. */
  async #checkOutput(result: object, schema: JsonSchema, upstreamTool: unknown): Promise<object> {
    const { structuredContent, content = [], isError } = result as Partial<CallToolResult>
    if (result instanceof InputRequired || isError) return result
    const isMissing = structuredContent === undefined
    const problems = isMissing ? 'it has no structured content' : await problemsOf(structuredContent, schema, 'output')
    if (problems === undefined) return result
    const { name: upstream } = this.settings
    if (!this.#loggedMismatches.has(schema)) {
      const fields = { upstream, upstreamTool, problems }
      this.#parts.host.log.warn(
        { code: 'MH2957', ...fields },
        'a result of an upstream server does not match its output schema',
      )
    }
    this.#loggedMismatches.add(schema)
    const text = `The result of the server "${upstream}" does not match the output schema of the tool (MH2957):\n${problems}`
    return { content: [{ type: 'text', text }, ...content], isError: true }
  }

  #toCallerError(error: unknown, call: Call): Error {
    const { http, name } = this.settings
    this.#parts.host.log.debug({ upstream: name, reason: reasonOf(error) }, 'a request to an upstream server failed')
    if (!isUnauthorized(error) || http?.auth?.kind !== 'bridge') return toCallError(name, error, this.#outageStart)
    // The token belongs to the caller's login at this host, which the client can renew.
    const { route, params } = call.offer
    const caller = { user: call.user, route, params }
    return loginExpired(this.#parts.host.services, caller, `the server "${name}" refused the token of the user`)
  }

  async #call(method: string, params: Json, ctx: CallContext, call: Call): Promise<object> {
    const round = roundOf(ctx)
    const state = round?.state as RoundState | undefined
    if (round && state?.held !== undefined) {
      const { held, node = '' } = state
      if (node !== this.#parts.nodeRelay.nodeOf(call)) return this.#forward({ held, node }, params, ctx, call)
      const active = this.#parts.held.take(held)
      if (!active) throw this.#notHeldError(node, 'the call has ended', params)
      await active.slot.retake()
      active.run.answer(round.responses)
      await active.run.next(new ContextClient(ctx, call))
      return this.#toResult(active, call)
    }
    const sent = paramsFor(this.settings, params, call)
    if (!round || isLoginRound(round.state)) return this.#send(method, sent, ctx, call)
    const continuation = { inputResponses: round.responses, requestState: state?.upstream }
    return this.#send(method, { ...sent, ...continuation }, ctx, call)
  }

  #notHeldError(node: string, reason: string, { name: tool }: Json): ToolError {
    const fields = { upstream: this.settings.name, upstreamTool: tool, node, reason }
    this.#parts.host.log.info({ code: 'MH2952', ...fields }, 'a response arrived for a call that is no longer held')
    return new ToolError(TOO_LATE)
  }

  /** Continues a call that another node holds. */
  async #forward(
    { held, node }: { readonly held: string; readonly node: string },
    params: Json,
    ctx: CallContext,
    call: Call,
  ): Promise<object> {
    const { nodeRelay } = this.#parts
    const { name, callTimeout: timeout } = this.settings
    const { logLevel } = call
    const { capabilities } = new ContextClient(ctx, call)
    const responses = roundOf(ctx)?.responses ?? {}
    const resume = { server: name, held, responses, capabilities, logLevel }
    const end = await nodeRelay.forward(ctx, call, node, resume, timeout)
    if ('gone' in end) throw this.#notHeldError(node, 'the call has ended at its node', params)
    if ('isLost' in end) throw this.#notHeldError(node, 'the node of the call does not respond', params)
    if ('refusal' in end) throw new ToolError(end.refusal)
    if ('failure' in end) throw new RemoteError(end.failure.reason, end.failure.message, end.failure)
    if ('result' in end) return this.#readResult(end.result, params)
    return new InputRequired(end.requests as InputRequired['requests'], { held: end.held, node }, () =>
      nodeRelay.giveUp(call, node, name, end.held),
    )
  }

  /** Continues a held call for a client at another node. */
  async continueHeld(id: string, responses: Json, client: RequestClient): Promise<RelayResult> {
    const active = this.#parts.held.take(id)
    if (!active) return { gone: true }
    const { run } = active
    await active.slot.retake()
    run.answer(responses)
    await run.next(client)
    const { outcome, requests } = run
    try {
      if (!outcome) return { requests, held: this.#storeHeld(active, true) }
    } catch (error) {
      return { refusal: (error as Error).message }
    }
    active.end()
    if ('result' in outcome) return outcome
    const { error } = outcome
    const known = error instanceof RemoteError ? error : new RemoteError('lost', String(error), { executed: 'maybe' })
    const { reason, message, code, data, status, executed } = known
    return { failure: { reason, message, code, data, status, executed } }
  }

  giveUpHeld(id: string): void {
    this.#parts.held.giveUp(id)
  }

  /** Sends a call. Repeats it once if the server certainly did not execute it. */
  async #send(method: string, params: Json, ctx: CallContext, call: Call): Promise<object> {
    try {
      return await this.#sendOnce(method, params, ctx, call)
    } catch (error) {
      if (contextCancellation(ctx).aborted || !this.#canRepeat(error, call, method)) throw error
      return this.#sendOnce(method, params, ctx, call)
    }
  }

  async #sendOnce(method: string, params: Json, ctx: CallContext, call: Call): Promise<object> {
    const slot = new CallSlot(this.#queue, call)
    if (slot.ready) await slot.ready
    let active: ActiveCall
    try {
      if (contextCancellation(ctx).aborted) throw new RemoteError('cancelled', 'the call was cancelled')
      const authorized = this.#parts.targets.authorize(ctx)
      if (authorized) await this.#keepCredentials(call, authorized)
      const lease = this.#useSharedSession() ?? (await this.#useSession(call))
      if (lease.session.close) this.#warnOfOtherNode(ctx, call)
      active = this.#start(method, params, call, slot, lease)
    } catch (error) {
      slot.leave()
      throw error
    }
    await active.run.next(new ContextClient(ctx, call))
    return this.#toResult(active, call)
  }

  #start(
    method: string,
    params: Json,
    call: Call,
    slot: CallSlot,
    { session, leave }: { readonly session: ServerSession; leave(): void },
  ): ActiveCall {
    // The lists may have changed since the call began.
    const kind = method === 'tools/call' ? 'tool' : 'prompt'
    if (this.#withheld.size > 0 && method !== 'resources/read' && this.#withheld.has(labelOf(kind, params['name']))) {
      leave()
      throw changedError(kind, this.settings.name)
    }
    this.#setLogLevel(call, session)
    const run = new UpstreamRequest({ settings: this.settings, clock: this.#parts.host.clock })
    session.runs?.add(run)
    this.#active++
    const end = () => {
      const { outcome } = run
      if (outcome && 'error' in outcome && isSessionLost(outcome.error)) this.#dropSession(session, outcome.error)
      session.runs?.delete(run)
      leave()
      slot.leave()
      this.#endCall()
    }
    run.start(session.connection, method, this.#addTrace(params, call), this.#requestOptions(call, session))
    return new ActiveCall(run, params, call, slot, end)
  }

  /** Adds the trace context of the call, in place of the caller's. */
  #addTrace(params: Json, call: Call): Json {
    const trace = this.#parts.host.services.slot('tracer', call.offer.route).headersFor(call)
    return Object.keys(trace).length === 0 ? params : { ...params, _meta: { ...(params['_meta'] as Json), ...trace } }
  }

  /** True if the server certainly did not execute the call or only reads, and a retry can succeed. */
  #canRepeat(error: unknown, call: Call, method: string): boolean {
    if (!(error instanceof RemoteError)) return false
    if (error.executed !== 'no') return error.reason === 'lost' && method !== 'tools/call'
    const stepUp = readStepUp(error.status, error.challenge)
    if (isUnauthorized(error) || stepUp !== undefined) {
      const own = this.#credentials.get(call)
      return own ? own.invalidateToken(stepUp) : stepUp === undefined && this.#parts.targets.invalidateToken()
    }
    return error.reason === 'lost'
  }

  /** Returns the result, or the requests of the server to the caller. */
  #toResult(active: ActiveCall, call: Call): object {
    const { run, params, end } = active
    const { outcome } = run
    if (!outcome) return this.#holdCall(active, call)
    end()
    if ('error' in outcome) throw outcome.error
    return this.#readResult(outcome.result, params)
  }

  #readResult(result: Json, params: Json): object {
    const { name } = this.settings
    const input = readInputRequests(result, this.settings)
    if (!input) return cleanResult(result, this.settings)
    if (Object.keys(input.requests).length > 0) return new InputRequired(input.requests, { upstream: input.state })
    const what = params['name'] ?? params['uri']
    throw new ToolError(`The server "${name}" cannot execute "${what}" now. Try again later.`)
  }

  #holdCall(active: ActiveCall, call: Call): object {
    const { held, nodeRelay } = this.#parts
    const { requests } = active.run
    const id = this.#storeHeld(active, call.asks === 'input_required')
    // Only clients with a session can cancel the call now: for other clients, the request has already ended.
    if (typeof call.asks === 'object') call.signal.addEventListener('abort', () => held.giveUp(id), { once: true })
    return new InputRequired(requests, { held: id, node: nodeRelay.nodeOf(call) }, () => held.giveUp(id))
  }

  /** Holds a call. Gives it up and throws above the limits. `isSealed`: its requests are part of `requestState`. */
  #storeHeld(active: ActiveCall, isSealed: boolean): string {
    const { run, end } = active
    try {
      if (isSealed && Buffer.byteLength(JSON.stringify(run.requests)) > MAX_INPUT_REQUEST_BYTES)
        throw new ToolError(`A request of the server "${this.settings.name}" to the user is too large.`)
      const id = this.#parts.held.add(active)
      active.slot.leave()
      return id
    } catch (error) {
      run.giveUp()
      end()
      throw error
    }
  }

  async complete(ref: Json, argument: Json, context: Json, ctx: CallContext): Promise<{ values: string[] }> {
    const call = callOf(ctx)
    if (!call) throw new Error('the context is not one of a call')
    this.#active++
    try {
      const { completion } = (await this.#send('completion/complete', { ref, argument, context }, ctx, call)) as Json
      const values = (completion as { values?: unknown } | undefined)?.values
      return { ...(completion as object), values: Array.isArray(values) ? values.map(String) : [] }
    } catch (error) {
      throw this.#toCallerError(error, call)
    } finally {
      this.#endCall()
    }
  }
}

const TOO_LATE =
  'The call no longer waits for a response: it timed out, was already answered, or its node stopped. It may have been executed: check before you repeat it (MH2952).'
