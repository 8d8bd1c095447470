// The audit entry of a request.
import { type CallRecord, isObject } from '../../core/index.ts'
import { plainText } from './files.ts'

/** Characters of one value. */
const MOST = 256

function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return plainText(value, MOST)
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
  return Array.isArray(value) ? `[a list of ${value.length}]` : '[an object]'
}

function pickArguments(names: readonly string[], given: unknown): Record<string, unknown> | undefined {
  if (!isObject(given)) return undefined
  const found = names.filter(name => Object.hasOwn(given, name)).map(name => [name, shownValue(given[name])] as const)
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

interface EntrySettings {
  /** Writes subjects and issuers as they are. */
  readonly clear: boolean
  /** Names of top-level arguments to write, by tool. */
  readonly arguments: ReadonlyMap<string, readonly string[]>
  /** Whether the config has such an item on the route, including items hidden from the caller. */
  isKnown(route: string | undefined, kind: string, name: string): boolean
}

/** Errors of allowed calls. */
const FAILURES: ReadonlySet<string> = new Set(['internal', 'callTimeout', 'nodeLost', 'stateTooLarge', 'unavailable'])

const MOST_REASON = 256
/** Name of an item that the caller cannot see; see CallRecord. */
const OTHER = '_OTHER'

function decisionOf({ outcome, error }: CallRecord): 'allowed' | 'refused' {
  if (outcome === 'refused') return 'refused'
  return outcome === 'error' && error && !FAILURES.has(error.kind) ? 'refused' : 'allowed'
}

/** Includes the name of an existing item that is hidden from the caller. */
function nameOf({ item, call, route }: CallRecord, settings: EntrySettings): string | undefined {
  if (!item || item.name !== OTHER || item.kind === 'resources') return item?.name
  const asked = call?.params['name']
  return typeof asked === 'string' && settings.isKnown(route, item.kind, asked) ? asked : OTHER
}

/** Whether a client ended its session. */
export const isSessionEnd = ({ outcome, http, session }: Pick<CallRecord, 'outcome' | 'http' | 'session'>): boolean =>
  http?.verb === 'DELETE' && (outcome === 'ok' || outcome === 'cancelled') && session !== undefined

export function entryOf(record: CallRecord, settings: EntrySettings): string {
  const { call, at, outcome, error, http, item, client } = record
  const user = settings.clear ? call?.user : undefined
  const name = nameOf(record, settings)
  const given = item?.kind === 'tools' && name !== undefined ? settings.arguments.get(name) : undefined
  return JSON.stringify({
    time: new Date(at).toISOString(),
    event: call ? 'call' : isSessionEnd(record) ? 'session ended' : 'request',
    decision: decisionOf(record),
    outcome,
    error: error?.kind,
    by: record.refusedBy,
    reason: error?.reason === undefined ? undefined : plainText(error.reason, MOST_REASON),
    route: record.route,
    method: record.method,
    kind: item?.kind,
    name,
    arguments: given && call ? pickArguments(given, call.params['arguments']) : undefined,
    verb: http?.verb,
    status: http?.status,
    ms: Math.round(record.milliseconds),
    user: record.user,
    subject: user && plainText(user.subject, 256),
    issuer: user?.issuer === undefined ? undefined : plainText(user.issuer, 256),
    oauthClient: record.oauthClient,
    client: client && `${client.name} ${client.version}`.trim(),
    revision: record.revision,
    transport: record.transport,
    asked: record.asked.length > 0 ? record.asked : undefined,
    session: record.session,
    ip: record.ip,
    requestId: record.requestId,
    traceId: record.traceId,
  })
}
