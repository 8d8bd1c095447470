// Formats a line of the access log: JSON, or text for people.
import type { CallRecord } from '../../core/plugin.ts'
import { plainText } from '../../core/transport.ts'

/** Maximum characters of a reason in a text line. */
const MOST_REASON = 160

const round = (milliseconds: number) => Math.round(milliseconds * 100) / 100

const SECOND = 1_000
/** Cached text of the last second: formatting it is a fifth of the cost of a line. */
let second = Number.NaN
let beginning = ''

function timeText(at: number): string {
  const whole = Math.floor(at / SECOND)
  if (whole !== second) {
    second = whole
    beginning = new Date(whole * SECOND).toISOString().slice(0, -4)
  }
  const rest = Math.floor(at - whole * SECOND)
  return `${beginning}${String(rest).padStart(3, '0')}Z`
}

interface LineFacts {
  readonly slow: boolean
  /** The sampling rate, if not every request is logged. */
  readonly sample: number | undefined
}

export function jsonLine(record: CallRecord, { slow, sample }: LineFacts): string {
  const {
    at,
    route,
    method,
    item,
    outcome,
    error,
    refusedBy,
    milliseconds,
    http,
    revision,
    transport,
    asked,
    client,
    ip,
    upstream,
  } = record
  const { user, oauthClient, session, requestId, traceId, bytesIn, bytesOut } = record
  const fields = {
    time: timeText(at),
    route,
    verb: http?.verb,
    status: http?.status,
    method,
    name: item?.name,
    outcome,
    error: error?.kind,
    by: refusedBy,
    reason: error?.reason,
    ms: round(milliseconds),
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
export function textLine(record: CallRecord, { slow }: LineFacts): string {
  const {
    at,
    route = '-',
    method,
    item,
    outcome,
    error,
    refusedBy,
    milliseconds,
    http,
    user = 'anonymous',
    client,
  } = record
  const what = http ? `${http.verb} ${http.status}` : [method, item?.name].filter(Boolean).join(' ')
  const parts = [
    timeText(at),
    `${round(milliseconds)} ms`.padStart(11),
    error?.kind ?? outcome,
    route,
    what,
    user,
    // Quoted, so that a value cannot look like another column.
    client && JSON.stringify(`${client.name} ${client.version}`.trim()),
    refusedBy && `refused by ${refusedBy}`,
    error?.reason && JSON.stringify(plainText(error.reason, MOST_REASON)),
    slow && 'SLOW',
  ]
  return `${parts.filter(Boolean).join('  ')}\n`
}
