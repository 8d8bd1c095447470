// A tool that uses only its arguments.
import { defineTool } from 'mcp-host'

const MILLISECONDS_PER_DAY = 24 * 60 * 60 * 1000
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

export const daysBetween = defineTool({
  name: 'days_between',
  title: 'Days between two dates',
  description: 'Counts the days between two dates, and returns the weekday of the second.',
  annotations: { readOnlyHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: {
      from: { type: 'string', format: 'date', description: 'Such as 2026-01-31.' },
      to: { type: 'string', format: 'date', description: 'Such as 2026-12-24. Can be the earlier date.' },
    },
    required: ['from', 'to'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { days: { type: 'integer' }, weekday: { type: 'string' } },
    required: ['days', 'weekday'],
  },
  // `from` and `to` have the types of the schema. Invalid arguments are rejected before this call.
  handler({ from, to }) {
    const days = (Date.parse(to) - Date.parse(from)) / MILLISECONDS_PER_DAY
    return { days, weekday: WEEKDAYS[new Date(to).getUTCDay()] ?? '' }
  },
})
