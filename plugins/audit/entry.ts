// The audit entries of requests, and the summary of refused anonymous requests.
import { addressKey } from '../../core/auth.ts'
import { type CallRecord, isObject } from '../../core/plugin.ts'
import { stamped } from './chain.ts'
import { plainText } from './files.ts'

/** Maximum characters of one value. */
const MAX_LENGTH = 256

function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return plainText(value, MAX_LENGTH)
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
  return Array.isArray(value) ? `[a list of ${value.length}]` : '[an object]'
}

function pickArguments(names: readonly string[], values: unknown): Record<string, unknown> | undefined {
  if (!isObject(values)) return undefined
  const found = names.filter(name => Object.hasOwn(values, name)).map(name => [name, shownValue(values[name])] as const)
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

interface EntrySettings {
  readonly clear: boolean
  readonly arguments: ReadonlyMap<string, readonly string[]>
  /** True if the config has such an item on the route, including items hidden from the caller. */
  isKnown(route: string | undefined, kind: string, name: string): boolean
}

/** The code of failures; refusals have other codes. */
const INTERNAL_ERROR = -32603

/** Stands for items that the caller cannot see (see CallRecord), and for further addresses. */
const OTHER = '_OTHER'

function decisionOf({ outcome, error }: CallRecord): 'allowed' | 'refused' {
  if (outcome === 'refused') return 'refused'
  return outcome === 'error' && error && error.code !== INTERNAL_ERROR ? 'refused' : 'allowed'
}

/** Includes the name of an existing item that is hidden from the caller. */
function nameOf({ item, call, route }: CallRecord, settings: EntrySettings): string | undefined {
  if (!item || item.name !== OTHER || item.kind === 'resources') return item?.name
  const name = call?.params['name']
  return typeof name === 'string' && settings.isKnown(route, item.kind, name) ? name : OTHER
}

export const isSessionEnd = ({ outcome, http, session }: Pick<CallRecord, 'outcome' | 'http' | 'session'>): boolean =>
  http?.verb === 'DELETE' && (outcome === 'ok' || outcome === 'cancelled') && session !== undefined

export function entryOf(record: CallRecord, settings: EntrySettings): string {
  const { call, at, outcome, error, http, item, client, upstream } = record
  const reason = error?.reason ?? upstream?.failure
  const user = settings.clear ? call?.user : undefined
  const name = nameOf(record, settings)
  const picked = item?.kind === 'tools' && name !== undefined ? settings.arguments.get(name) : undefined
  const fields = {
    event: call ? 'call' : isSessionEnd(record) ? 'session ended' : 'request',
    decision: decisionOf(record),
    outcome,
    error: error?.kind,
    by: record.refusedBy,
    reason: reason && plainText(reason, MAX_LENGTH),
    route: record.route,
    method: record.method,
    kind: item?.kind,
    name,
    arguments: picked && call ? pickArguments(picked, call.params['arguments']) : undefined,
    verb: http?.verb,
    status: http?.status,
    ms: Math.round(record.milliseconds),
    upstream: upstream?.name,
    upstreamTool: upstream?.tool,
    upstreamMs: upstream && Math.round(upstream.milliseconds),
    user: record.user,
    subject: user && plainText(user.subject, MAX_LENGTH),
    issuer: user?.issuer === undefined ? undefined : plainText(user.issuer, MAX_LENGTH),
    oauthClient: record.oauthClient,
    client: client && `${client.name} ${client.version}`.trim(),
    revision: record.revision,
    transport: record.transport,
    asked: record.asked.length > 0 ? record.asked : undefined,
    session: record.session,
    ip: record.ip,
    requestId: record.requestId,
    traceId: record.traceId,
  }
  return stamped(fields, at)
}

/** Period of the summary, milliseconds. */
const PERIOD = 60_000
/** Maximum full lines per address, and for all addresses. */
const MAX_OF_ONE = 10
const MAX_OF_ALL = 200
/** Maximum distinct addresses; further addresses are counted together. */
const MAX_ADDRESSES = 100
/** One machine usually has a whole /64 network. */
const NETWORK_BITS = 64

interface Tally {
  full: number
  counted: number
  first: number
  last: number
  readonly causes: Map<string, number>
}

const isAnonymous = ({ call, outcome, user }: CallRecord): boolean =>
  call === undefined && outcome === 'refused' && user === undefined

const iso = (at: number) => new Date(at).toISOString()

function lineOf(ip: string, { counted, first, last, causes }: Tally): string {
  const errors = Object.fromEntries(causes)
  const span = { count: counted, from: iso(first), until: iso(last) }
  return stamped({ event: 'refusals', decision: 'refused', ip, ...span, errors })
}

/** Counts refused anonymous requests; pushes a summary after each period. */
export function createAnonymousRefusals(push: (fields: string) => void) {
  let tallies = new Map<string, Tally>()
  let full = 0
  let period: NodeJS.Timeout | undefined

  function pushTallies() {
    clearTimeout(period)
    period = undefined
    const finished = tallies
    tallies = new Map()
    full = 0
    for (const [ip, tally] of finished) if (tally.counted > 0) push(lineOf(ip, tally))
  }

  function tallyOf(ip: string): Tally {
    const group = addressKey(ip, NETWORK_BITS)
    const key = tallies.has(group) || tallies.size < MAX_ADDRESSES ? group : OTHER
    const found = tallies.get(key) ?? { full: 0, counted: 0, first: 0, last: 0, causes: new Map() }
    tallies.set(key, found)
    return found
  }

  return {
    /** Returns true if the request was counted and gets no line of its own. */
    count(record: CallRecord): boolean {
      if (!isAnonymous(record)) return false
      period ??= setTimeout(pushTallies, PERIOD).unref()
      const tally = tallyOf(record.ip)
      if (tally.full < MAX_OF_ONE && full < MAX_OF_ALL) {
        tally.full++
        full++
        return false
      }
      if (tally.counted++ === 0) tally.first = record.at
      tally.last = record.at
      const cause = `${record.refusedBy ?? '-'} ${record.error?.kind ?? '-'}`
      tally.causes.set(cause, (tally.causes.get(cause) ?? 0) + 1)
      return true
    },
    close: pushTallies,
  }
}
