// Reads the lists of a server, compares them with the lock file, and serves them.
import { isDeepStrictEqual } from 'node:util'
import type { Definition } from '../../core/index.ts'
import type { Timer } from '../../core/plugin.ts'
import type { Connection, RemoteError } from '../../remote/index.ts'
import { countsText, visibleLine } from '../families/texts/index.ts'
import type { Difference, UpstreamState } from '../families/upstream-calls/index.ts'
import { createDefiner, type UpstreamClient } from './definitions.ts'
import { isSessionLost, isVersionRefused } from './failures.ts'
import { readLists, type Snapshot } from './lists.ts'
import { type LockEntry, listsOf, reviewLists } from './lock-entry.ts'
import { invalidNames, isIncluded, isRestrictionLost, isServed, labelOf, toolName, unmatchedFilters } from './names.ts'
import type { UpstreamParts, UpstreamServer } from './server-parts.ts'
import { serverUri } from './uris.ts'

/** Minimum time between two reads of the lists, milliseconds. */
const REFRESH_INTERVAL = 1_000
const JITTER = 0.1
const MAX_LOGGED = 5
/** Maximum withheld items that are named in the log. */
const MAX_NAMED_ITEMS = 100
/** Pause between two reads of the lists, as a multiple of the duration of the last read. */
const REFRESH_PAUSE = 10

export class ServedLists {
  readonly #server: UpstreamServer
  readonly #parts: UpstreamParts
  readonly #define: ReturnType<typeof createDefiner>
  #connection: Connection | undefined
  #refreshTimer: Timer | undefined
  #refreshing: Promise<void> | undefined
  /** The earliest time at which a notification can cause a refresh. */
  #refreshFrom = Number.NEGATIVE_INFINITY
  #isStale = false
  #isStopped = false
  #snapshot: Snapshot | undefined
  #canComplete = false
  #accepted: LockEntry | undefined
  #hasListError = false
  #isRefused = false
  // The last logged texts. Each is logged once.
  #loggedOmitted = ''
  #loggedUnmatched = ''
  #loggedInvalidNames = ''
  #changedTools: ReadonlyMap<string, string> = new Map()
  #instructions: string | undefined
  #withheld: ReadonlyMap<string, string> = new Map()
  #differences: readonly Difference[] = []

  constructor(server: UpstreamServer, parts: UpstreamParts, client: UpstreamClient) {
    this.#server = server
    this.#parts = parts
    this.#accepted = parts.accepted
    this.#define = createDefiner(parts.settings, client)
  }

  /** True if the lists have been read from the server. */
  get isRead(): boolean {
    return this.#snapshot !== undefined
  }
  /** True if the lock file has an entry for the server. */
  get isAccepted(): boolean {
    return this.#accepted !== undefined
  }
  get differences(): readonly Difference[] {
    return this.#differences
  }
  /** Withheld items with the reasons. */
  get withheld(): ReadonlyMap<string, string> {
    return this.#withheld
  }
  /** Returns why a changed tool is withheld, by its name on the route. Undefined for other tools. */
  withheldReason(name: string): string | undefined {
    return this.#changedTools.get(name)
  }
  /** The instructions of the server for models, if the options pass them on. */
  get instructions(): string | undefined {
    const { name, prefix, instructions } = this.#parts.settings
    const accepted = instructions === 'append' ? this.#accepted?.instructions : undefined
    const text = this.#snapshot ? this.#instructions : accepted
    if (text === undefined) return undefined
    const names = prefix === '' ? '' : `, whose tool names begin with "${prefix}"`
    return `Instructions of the server "${name}"${names}:\n${text}`
  }
  get hasListError(): boolean {
    return this.#hasListError
  }
  get warnings(): UpstreamState['warnings'] {
    return [
      ...(this.#hasListError ? ['MH2944' as const] : []),
      ...(this.#loggedOmitted === '' ? [] : ['MH2945' as const]),
      ...(this.#loggedUnmatched === '' ? [] : ['MH2949' as const]),
    ]
  }

  /** True if this server has a resource with this URI. */
  hasResource(watched: string): boolean {
    const uri = serverUri(this.#parts.settings, watched)
    if (uri === undefined) return false
    const { resources = [], resourceTemplates = [] } = this.#snapshot ?? {}
    if (resources.some(item => item['uri'] === uri)) return true
    return resourceTemplates.some(({ uriTemplate }) => {
      const [start = ''] = String(uriTemplate).split('{')
      return start !== '' && uri.startsWith(start)
    })
  }

  /** True if the process must be restarted, because its lists differ from the lock file: `accept` read them from a new process. */
  needsRestart(accepted: LockEntry | undefined): boolean {
    if (!this.#parts.settings.command || !this.#snapshot || !accepted) return false
    const isNewEntry = !isDeepStrictEqual(accepted, this.#accepted)
    const { settings } = this.#parts
    const { differences } = reviewLists(this.#snapshot, accepted, settings)
    // Programs can add tools while they run, so a new item that `newTools` does not withhold needs no restart.
    return differences.some(({ kind, isWithheld }) =>
      kind === 'new' ? settings.newTools === 'withhold' : isWithheld || isNewEntry,
    )
  }

  /** Compares the lists with another entry of the lock file. Returns the changes to report. */
  setLockEntry(accepted: LockEntry | undefined): string[] {
    const { name } = this.#parts.settings
    const previous = this.#withheld
    const isSameEntry = isDeepStrictEqual(accepted, this.#accepted)
    this.#accepted = accepted
    if (this.#snapshot) this.#serve(this.#snapshot)
    if (this.#differences.length > 0) this.requestRefresh()
    const changes = [
      ['no longer withheld', [...previous.keys()].filter(label => !this.#withheld.has(label))],
      ['now withheld', [...this.#withheld.keys()].filter(label => !previous.has(label))],
    ] as const
    const texts = changes.flatMap(([what, { length }]) =>
      length === 0 ? [] : `server "${name}": ${countsText({ items: length })} ${what}`,
    )
    return isSameEntry || texts.length > 0
      ? texts
      : [`server "${name}": new entry of the lock file; the same items are served`]
  }

  /** Returns definitions of the lock file, which are served until the server is connected. */
  acceptedDefinitions(): readonly Definition[] {
    return this.#accepted ? this.#define(listsOf(this.#accepted), this.#accepted.completions).definitions : []
  }

  /** Serves the tools of the lock file. */
  serveAccepted(): void {
    this.#parts.toolset.replace(this.acceptedDefinitions())
  }

  /** Serves the lists of the previous instance until the first read, or those of the lock file. */
  takeOver(previous: ServedLists, keepsLists: boolean): void {
    this.#canComplete = previous.#canComplete
    if (keepsLists) this.#snapshot = previous.#snapshot
    if (this.#snapshot) this.#serve(this.#snapshot)
    else this.serveAccepted()
  }

  /** Reads the lists of a new connection, and then at the interval `refresh`. */
  async attach(connection: Connection): Promise<void> {
    this.#connection = connection
    await this.#readAndServe()
    this.#schedulePolling()
  }

  /** Stops reading when the connection has ended. */
  detach(): void {
    this.#connection = undefined
    this.#parts.host.clock.clear(this.#refreshTimer)
  }

  /** Stops reading, and discards a read in progress. */
  stop(): void {
    this.#isStopped = true
    this.#parts.host.clock.clear(this.#refreshTimer)
  }

  /** Reads the lists again: at most once a second, and after a pause of ten times the duration of the last read. */
  requestRefresh() {
    if (this.#isStale || this.#isStopped) return
    this.#isStale = true
    if (!this.#refreshing) this.#delayRefresh()
  }

  #delayRefresh() {
    const { clock } = this.#parts.host
    const delay = Math.max(0, this.#refreshFrom - clock.monotonic())
    clock.setTimeout(() => this.#runRefresh(), delay).unref()
  }

  #runRefresh() {
    if (this.#isStopped) return
    this.#refreshing ??= this.#readAndServe()
      .catch(error => {
        this.#server.reportUnreachable(error)
        this.#logListError(error)
        if (isVersionRefused(error)) this.#handleRefusal(error)
      })
      .finally(() => {
        this.#refreshing = undefined
        this.#schedulePolling()
        if (this.#isStale) this.#delayRefresh()
      })
  }

  /** Reconnects if the session is lost, or after two refusals: a proxy can refuse a single request while other calls run. */
  #handleRefusal(error: RemoteError) {
    this.#isRefused = !this.#isRefused && !isSessionLost(error)
    if (this.#isRefused) this.requestRefresh()
    else this.#server.reconnect(error)
  }

  #schedulePolling() {
    const { clock } = this.#parts.host
    const { refresh } = this.#parts.settings
    clock.clear(this.#refreshTimer)
    if (refresh === 0 || !this.#connection || this.#isStopped) return
    const delay = refresh * (1 - JITTER + 2 * JITTER * Math.random())
    this.#refreshTimer = clock.setTimeout(() => this.#runRefresh(), delay).unref()
  }

  #logListError(error: unknown) {
    if (this.#server.signal.aborted) return
    this.#hasListError = true
    const fix = 'check the server; the host reads the lists again after a change notification or the interval `refresh`'
    const fields = { upstream: this.#parts.settings.name, reason: this.#server.recordError(error), fix }
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
    const { maxTools, callTimeout } = this.#parts.settings
    const snapshot = await readLists(connection, { maxTools, timeout: callTimeout, signal: this.#server.signal })
    if (this.#connection !== connection) return
    this.#snapshot = snapshot
    this.#hasListError = this.#isRefused = false
    this.#canComplete = connection.capabilities.completions !== undefined
    this.#serve(snapshot)
    this.#warnOfFilters(snapshot)
    this.#warnOfNames(snapshot)
  }

  /** Warns once per change: a model or user sees the changed names. */
  #warnOfNames({ tools, prompts }: Snapshot) {
    const { name: upstream, prefix, overrides } = this.#parts.settings
    const own = tools.map(({ name }) => String(name)).filter(name => isIncluded(this.#parts.settings, name))
    const kept = own.filter(name => !Object.hasOwn(overrides, name) || overrides[name]?.name === undefined)
    const served = prompts.map(({ name }) => String(name)).filter(name => isServed(this.#parts.settings.prompts, name))
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
    const { settings } = this.#parts
    const unmatched = unmatchedFilters(settings, tools).slice(0, MAX_LOGGED)
    const text = unmatched.join()
    if (text === this.#loggedUnmatched) return
    this.#loggedUnmatched = text
    if (unmatched.length === 0) return
    const isOpen = isRestrictionLost(settings, tools)
      ? '; `access` and fixed arguments of these overrides protect no tool'
      : ''
    const fix = `correct \`include\`, \`exclude\` or \`overrides\`: they use upstream names without the prefix${isOpen}`
    const fields = { upstream: settings.name, unmatched, fix }
    this.#parts.host.log.warn(
      { code: 'MH2949', ...fields },
      'filters or overrides match no tool or argument of an upstream server',
    )
  }

  #serve(snapshot: Snapshot) {
    if (this.#isStopped) return
    const { served, changedTools, withheld, differences } = reviewLists(snapshot, this.#accepted, this.#parts.settings)
    const { definitions, omitted } = this.#define(served, this.#canComplete, changedTools)
    this.#withheld = withheld
    this.#differences = differences
    this.#instructions = served.instructions
    this.#changedTools = new Map(
      changedTools.map(name => [toolName(this.#parts.settings, name), withheld.get(labelOf('tool', name)) ?? '']),
    )
    this.#parts.toolset.replace(definitions)
    this.#logOmitted(new Map([...withheld, ...omitted]), [...withheld.keys()])
  }

  #logOmitted(omitted: ReadonlyMap<string, string>, withheld: readonly string[]) {
    const reasons = Object.fromEntries([...omitted].slice(0, MAX_LOGGED))
    const text = omitted.size === 0 ? '' : JSON.stringify([...omitted])
    if (text === this.#loggedOmitted) return
    this.#loggedOmitted = text
    const { name } = this.#parts.settings
    const { log } = this.#parts.host
    if (omitted.size === 0) {
      const differences = this.#differences.slice(0, MAX_LOGGED).map(({ kind, label }) => `${kind}: ${label}`)
      log.info({ code: 'MH2960', upstream: name, differences }, 'no items of an upstream server are omitted any more')
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
}
