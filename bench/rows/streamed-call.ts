// What a streamed answer costs: a tools/call of 2026-07-28 whose tool tells of progress five times before its result.
// The calls answered with JSON do the same work and ask for no progress.
import { CONFIG_IMPORTS, oursWith } from '../contestants.ts'
import { callTool, withProgress } from '../requests.ts'
import { type Row, ratio } from '../row.ts'

const EVENTS = 5

const CONFIG = `${CONFIG_IMPORTS}
const report = defineTool({
  name: 'report',
  description: 'Returns its message after some events.',
  input: INPUT_SCHEMA,
  handler({ message }, { progress }) {
    for (let event = 1; event <= ${EVENTS}; event++) progress(event, ${EVENTS})
    return message
  },
})

export default {
  server: SERVER_INFO,
  http: { port: 0 },
  toolsets: { reports: [report] },
  routes: { '/mcp': { toolsets: ['reports'] } },
  plugins: { 'transport-streamable': {} },
}
`

const call = callTool('report')

export const row: Row = {
  name: 'tools/call, streamed',
  contestants: [
    oursWith('ours, JSON', 'answered', CONFIG, call),
    oursWith(`ours, ${EVENTS} events`, 'streamed', CONFIG, withProgress(call, EVENTS)),
  ],
  targets: [ratio(`ours, ${EVENTS} events`, 'ours, JSON', '<=', 3)],
  quick: ['ours, JSON', `ours, ${EVENTS} events`],
}
