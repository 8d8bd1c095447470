// What one line of an audit says of a request: who, what, when, from where, whether it was allowed, and by which rule not.
import { type CallRecord, isObject } from '../../core/index.ts'
import { plainText } from './files.ts'

/** Characters of one value. */
const MOST = 256

function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return plainText(value, MOST)
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
  return Array.isArray(value) ? `[a list of ${value.length}]` : '[an object]'
}

/** Undefined if the call has none of these arguments. */
function pickArguments(names: readonly string[], given: unknown): Record<string, unknown> | undefined {
  if (!isObject(given)) return undefined
  const found = names.filter(name => Object.hasOwn(given, name)).map(name => [name, shownValue(given[name])] as const)
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

export interface EntrySettings {
  /** True: subjects and issuers as they are. */
  readonly clear: boolean
  /** By tool, the names of top-level arguments that may be written. */
  readonly arguments: ReadonlyMap<string, readonly string[]>
  /** Whether the config has such an item on the route, be it hidden from the caller or not. */
  isKnown(route: string | undefined, kind: string, name: string): boolean
}

/** What the host, or a tool, could not do, though it was allowed. */
const FAILURES: ReadonlySet<string> = new Set(['internal', 'callTimeout', 'nodeLost', 'stateTooLarge', 'unavailable'])

const MOST_REASON = 256
/** What a caller who may not see an item is told of it; see CallRecord. */
const OTHER = '_OTHER'

function decisionOf({ outcome, error }: CallRecord): 'allowed' | 'refused' {
  if (outcome === 'refused') return 'refused'
  return outcome === 'error' && error && !FAILURES.has(error.kind) ? 'refused' : 'allowed'
}

/** The item; one that is hidden from the caller by its name, too, where the config has it: who asked for it is to be found. */
function nameOf({ item, call, route }: CallRecord, settings: EntrySettings): string | undefined {
  if (!item || item.name !== OTHER || item.kind === 'resources') return item?.name
  const asked = call?.params['name']
  return typeof asked === 'string' && settings.isKnown(route, item.kind, asked) ? asked : OTHER
}

/** Its client ended a session, whether it waited to be told or not. */
export const isSessionEnd = ({ outcome, http, session }: Pick<CallRecord, 'outcome' | 'http' | 'session'>): boolean =>
  http?.verb === 'DELETE' && (outcome === 'ok' || outcome === 'cancelled') && session !== undefined

/** A JSON object, without what holds it in its chain. Fields that are undefined are left out. */
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
