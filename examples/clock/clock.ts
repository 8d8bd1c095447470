// The clock toolset: times in IANA time zones, with typed arguments and structured results.
// mcp.config.example.ts serves it as `clock`.
import { defineTool, ToolError } from 'mcp-host'
import { findMoment, isZone, type LocalMoment, parseLocal, readInZone, searchZones } from './zone-time.ts'

const zone = { type: 'string', maxLength: 64, description: 'An IANA time zone, such as Europe/Paris' } as const
const zones = { type: 'array', items: zone, minItems: 1, maxItems: 20 } as const
const utc = { type: 'string', format: 'date-time', description: 'The moment in UTC' } as const
const reading = {
  type: 'object',
  properties: {
    zone,
    local: { type: 'string', description: 'Local date and time, YYYY-MM-DDTHH:mm:ss' },
    offset: { type: 'string', description: 'Offset from UTC, such as +02:00' },
    weekday: { type: 'string' },
  },
  required: ['zone', 'local', 'offset', 'weekday'],
} as const

function checkZones(names: readonly string[]): void {
  const unknown = names.find(name => !isZone(name))
  if (unknown !== undefined) {
    // The model receives the message of a ToolError and can correct the call. Messages of other errors are not sent.
    throw new ToolError(`There is no time zone "${unknown}". The tool list_time_zones finds valid names.`)
  }
}

const formatUtc = (instant: number) => new Date(instant).toISOString()

/** Explains local times that do not occur exactly once. */
function explainOccurrence(time: string, from: string, moment: LocalMoment): string | undefined {
  if (moment.occurs === 'once') return undefined
  return moment.occurs === 'twice'
    ? `Clocks in ${from} were set back over ${time}: it occurs twice. This is the first; the second is ${formatUtc(moment.second)}.`
    : `Clocks in ${from} were set forward over ${time}: it never occurs. It is read as if they had not been.`
}

export const currentTime = defineTool({
  name: 'current_time',
  title: 'Current time',
  description: 'The current date and time in one or more time zones (default: UTC).',
  annotations: { readOnlyHint: true, openWorldHint: false },
  input: { type: 'object', properties: { zones }, additionalProperties: false },
  output: {
    type: 'object',
    properties: { utc, times: { type: 'array', items: reading } },
    required: ['utc', 'times'],
  },
  handler({ zones = ['UTC'] }) {
    checkZones(zones)
    const now = Date.now()
    return { utc: formatUtc(now), times: zones.map(zone => readInZone(now, zone)) }
  },
})

export const convertTime = defineTool({
  name: 'convert_time',
  title: 'Convert a time',
  description: 'What clocks in other time zones show when those in `from` show `time`.',
  annotations: { readOnlyHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: {
      time: {
        type: 'string',
        maxLength: 19,
        description: 'Local time in `from`: YYYY-MM-DDTHH:mm, or HH:mm for today; seconds may follow',
      },
      from: zone,
      to: zones,
    },
    required: ['time', 'from', 'to'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: {
      utc,
      occurs: {
        enum: ['once', 'twice', 'never'],
        description: 'How often the local time occurs on that day: clock changes repeat some times and skip others',
      },
      note: { type: 'string', description: 'How a time that occurs twice or never was read' },
      from: reading,
      to: { type: 'array', items: reading },
    },
    required: ['utc', 'occurs', 'from', 'to'],
  },
  handler({ time, from, to }) {
    checkZones([from, ...to])
    const wallTime = parseLocal(time, from, Date.now())
    if (wallTime === undefined) {
      throw new ToolError(`"${time}" is not a local time. Write it as 2026-03-29T14:30, or 14:30 for today.`)
    }
    const moment = findMoment(wallTime, from)
    const note = explainOccurrence(time, from, moment)
    return {
      utc: formatUtc(moment.instant),
      occurs: moment.occurs,
      ...(note !== undefined && { note }),
      from: readInZone(moment.instant, from),
      to: to.map(zone => readInZone(moment.instant, zone)),
    }
  },
})

export const listTimeZones = defineTool({
  name: 'list_time_zones',
  title: 'List time zones',
  description: 'Names of IANA time zones, all of them or those that contain `query`.',
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: { query: { type: 'string', maxLength: 64, description: 'Part of a name, such as "new york"' } },
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { zones: { type: 'array', items: { type: 'string' } } },
    required: ['zones'],
  },
  handler: ({ query = '' }) => ({ zones: searchZones(query) }),
})
