// Formats a line of the access log: JSON, or text for people.
import type { CallRecord } from '../../core/plugin.ts'
import { plainText } from '../../core/transport.ts'

/** Maximum characters of a reason in a text line. */
const MAX_REASON_LENGTH = 160

const round = (milliseconds: number) => Math.round(milliseconds * 100) / 100

const SECOND = 1_000
/** Cached text of the last second: formatting it is a fifth of the cost of a line. */
let cachedSecond = Number.NaN
let cachedPrefix = ''

function formatTime(at: number): string {
  const seconds = Math.floor(at / SECOND)
  if (seconds !== cachedSecond) {
    cachedSecond = seconds
    cachedPrefix = new Date(seconds * SECOND).toISOString().slice(0, -4)
  }
  const milliseconds = Math.floor(at - seconds * SECOND)
  return `${cachedPrefix}${String(milliseconds).padStart(3, '0')}Z`
}

interface LineFlags {
  readonly slow: boolean
  /** The sampling rate, if not every request is logged. */
  readonly sample: number | undefined
}

export function formatJson(record: CallRecord, { slow, sample }: LineFlags): string {
  const { asked, bytesIn, bytesOut, client, error, http, ip, item, method, oauthClient, outcome } = record
  const { requestId, revision, route, session, traceId, transport, upstream, user } = record
  const fields = {
    time: formatTime(record.at),
    route,
    verb: http?.verb,
    status: http?.status,
    method,
    name: item?.name,
    outcome,
    error: error?.kind,
    by: record.refusedBy,
    reason: error?.reason ?? upstream?.failure,
    ms: round(record.milliseconds),
    upstream: upstream?.name,
    upstreamTool: upstream?.tool,
    upstreamMs: upstream && round(upstream.milliseconds),
    slow: slow ? true : undefined,
    sample,
    in: bytesIn,
    out: bytesOut,
    ip,
    user,
    oauthClient,
    client: client && `${client.name} ${client.version}`.trim(),
    revision,
    transport,
    asked: asked.length > 0 ? asked : undefined,
    session,
    requestId,
    traceId,
  }
  return `${JSON.stringify(fields)}\n`
}

/** Columns: time, duration, outcome, route, request, user. */
export function formatText(record: CallRecord, { slow }: LineFlags): string {
  const { client, error, http, item, method, refusedBy, upstream } = record
  const reason = error?.reason ?? upstream?.failure
  const parts = [
    formatTime(record.at),
    `${round(record.milliseconds)} ms`.padStart(11),
    error?.kind ?? record.outcome,
    record.route ?? '-',
    http ? `${http.verb} ${http.status}` : [method, item?.name].filter(Boolean).join(' '),
    record.user ?? 'anonymous',
    // Quoted, so that a value cannot look like another column.
    client && JSON.stringify(`${client.name} ${client.version}`.trim()),
    refusedBy && `refused by ${refusedBy}`,
    reason && JSON.stringify(plainText(reason, MAX_REASON_LENGTH)),
    slow && 'SLOW',
  ]
  return `${parts.filter(Boolean).join('  ')}\n`
}
