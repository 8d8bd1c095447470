// How many days lie between two dates: a tool that needs nothing but its arguments.
import { defineTool } from 'mcp-host'

const MILLISECONDS_A_DAY = 24 * 60 * 60 * 1000
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

export const daysBetween = defineTool({
  name: 'days_between',
  title: 'Days between two dates',
  description: 'Counts the days from one date to another, and says which weekday the other one is.',
  annotations: { readOnlyHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: {
      from: { type: 'string', format: 'date', description: 'Such as 2026-01-31' },
      to: { type: 'string', format: 'date', description: 'Such as 2026-12-24; negative days where it is earlier' },
    },
    required: ['from', 'to'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { days: { type: 'integer' }, weekday: { type: 'string' } },
    required: ['days', 'weekday'],
  },
  // The types of `from` and `to` come from the schema, and arguments that do not fit it never get here.
  handler({ from, to }) {
    const days = (Date.parse(to) - Date.parse(from)) / MILLISECONDS_A_DAY
    return { days, weekday: WEEKDAYS[new Date(to).getUTCDay()] ?? '' }
  },
})
