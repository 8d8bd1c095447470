// Counts log lines with constant memory and builds the report.
import { isoTime } from '../text.ts'
import { createDigest, createDistinct, createRanking, type Ranked } from './counts.ts'
import { createLegacyTally } from './legacy.ts'
import { type LoggedLine, type LoggedRequest, type Refusals, readLoggedLine } from './log-lines.ts'

const MAX_TOOLS = 500
const MAX_CAUSES = 500
const MAX_REFUSED = 500

export interface Window {
  readonly since: number
  readonly until: number
  readonly future: number
}

/** Other methods, such as lists, run no definition. */
const CALLS: ReadonlySet<string | undefined> = new Set(['tools/call', 'prompts/get', 'resources/read'])

const createTool = () => ({ digest: createDigest(), errors: 0 })

export type ToolRow = ReturnType<typeof toolRow>

function toolRow({ key, count, entry }: Ranked<ReturnType<typeof createTool>>) {
  const [tool = '', route] = key.split('\n')
  const { digest, errors } = entry
  const times = { p50: digest.quantile(0.5), p95: digest.quantile(0.95), p99: digest.quantile(0.99) }
  return { tool, route: route || undefined, calls: Math.round(count), errors, ...times }
}

function causeRow({ key, count }: Ranked<unknown>) {
  const [by, error = '', reason] = key.split('\n')
  return { by: by || undefined, error, reason: reason || undefined, count: Math.round(count) }
}

function refusedRow({ key, count }: Ranked<unknown>) {
  const [user = '', error = ''] = key.split('\n')
  return { user, error, count: Math.round(count) }
}

const UNKNOWN = { users: undefined, clients: undefined, sessions: undefined }
const SAMPLED =
  'the access log was sampled: counts and percentiles are estimates, rare callers may be missing, and the numbers of clients, users and sessions are unknown'

const outcomesOf = (counts: ReadonlyMap<string, number>) =>
  Object.fromEntries([...counts].sort(([, a], [, b]) => b - a).map(([outcome, count]) => [outcome, Math.round(count)]))

export type Report = ReturnType<Tally['report']>

export class Tally {
  /** Number of lines of an access log or audit. */
  read = 0
  readonly #window: Window
  readonly #lines = { counted: 0, outside: 0, future: 0, skipped: 0 }
  readonly #outcomes = new Map<string, number>()
  readonly #tools = createRanking(MAX_TOOLS, createTool)
  readonly #causes = createRanking(MAX_CAUSES, () => undefined)
  readonly #refused = createRanking(MAX_REFUSED, () => undefined)
  readonly #users = createDistinct()
  readonly #clients = createDistinct()
  readonly #sessions = createDistinct()
  readonly #legacy = createLegacyTally()
  readonly #sources = new Set<'access log' | 'audit'>()
  #estimated = false
  #requests = 0
  #calls = 0
  #errors = 0
  #lost = 0
  #counted = 0
  #from = Infinity
  #until = -Infinity

  constructor(window: Window) {
    this.#window = window
  }

  line(text: string | undefined) {
    const read = text === undefined ? undefined : readLoggedLine(text)
    if (read === undefined) this.#lines.skipped++
    else this.#addLine(read)
  }

  #addLine(read: NonNullable<LoggedLine>) {
    this.read++
    if (read === 'own') return
    if ('gap' in read) this.#lost += read.gap
    // A future time is forged or from a wrong clock, and would shift the report's period.
    else if (read.at >= this.#window.future) this.#lines.future++
    else if (read.at < this.#window.since || read.at >= this.#window.until) this.#lines.outside++
    else if ('refusals' in read) this.#refusals(read)
    else this.#request(read)
  }

  #refusals({ refusals }: Refusals) {
    this.#outcomes.set('refused', (this.#outcomes.get('refused') ?? 0) + refusals)
    this.#counted += refusals
  }

  #request(request: LoggedRequest) {
    const { at, outcome, error, by, reason, user, client, session, weight } = request
    if (weight !== 1) this.#estimated = true
    this.#sources.add(request.audited ? 'audit' : 'access log')
    this.#lines.counted++
    this.#from = Math.min(this.#from, at)
    this.#until = Math.max(this.#until, at)
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + weight)
    // Printable text contains no line breaks, so they can separate the parts.
    const cause = error ?? (reason === undefined ? undefined : outcome)
    if (cause !== undefined) this.#causes.count(`${by ?? ''}\n${cause}\n${reason ?? ''}`, weight)
    if (user !== undefined) this.#users.add(user)
    if (user !== undefined && outcome === 'refused') this.#refused.count(`${user}\n${error ?? ''}`, weight)
    if (client !== undefined) this.#clients.add(client)
    if (session !== undefined) this.#sessions.add(session)
    if (request.method !== undefined) this.#legacy.add(request)
    if (CALLS.has(request.method)) this.#call(request)
    else this.#requests += weight
  }

  #call(call: LoggedRequest) {
    const { method, name, route = '', outcome, milliseconds, weight } = call
    const failed = outcome === 'error' || outcome === 'tool_error'
    this.#calls += weight
    if (failed) this.#errors += weight
    if (method !== 'tools/call' || name === undefined) return
    const tool = this.#tools.count(`${name}\n${route}`, weight)
    if (failed) tool.errors += weight
    if (milliseconds !== undefined) tool.digest.add(milliseconds, weight)
  }

  report(max: number, notes: readonly string[]) {
    const tools = this.#tools.list().map(toolRow)
    const causes = this.#causes.list().map(causeRow)
    const sampled = this.#estimated
    const found = [
      this.#sources.size > 1 &&
        'access logs and audits were read: requests that are in both are counted twice; give files of one kind',
      this.#lost > 0 && `the audit reports ${this.#lost} lost lines`,
      this.#counted > 0 &&
        `the audit counts ${this.#counted} refusals of anonymous requests: their causes are not listed`,
      sampled && SAMPLED,
    ]
    return {
      /** Success counts and percentiles are estimates, and rare callers can be missing. */
      estimated: sampled,
      from: isoTime(this.#from),
      until: isoTime(this.#until),
      calls: Math.round(this.#calls),
      errors: this.#errors,
      errorRatio: this.#calls === 0 ? 0 : this.#errors / this.#calls,
      requests: Math.round(this.#requests) + this.#counted,
      outcomes: outcomesOf(this.#outcomes),
      busiest: tools.slice(0, max),
      slowest: [...tools].sort((a, b) => (b.p95 ?? -1) - (a.p95 ?? -1)).slice(0, max),
      causes: causes.slice(0, max),
      causesNotListed: causes.slice(max).reduce((sum, { count }) => sum + count, Math.round(this.#causes.forgotten)),
      refused: this.#refused.list().slice(0, max).map(refusedRow),
      ...(sampled
        ? UNKNOWN
        : { users: this.#users.count(), clients: this.#clients.count(), sessions: this.#sessions.count() }),
      legacy: this.#legacy.report(sampled, max),
      lines: { ...this.#lines },
      notes: [...notes, ...found.filter(note => note !== false)],
    }
  }
}
