// What keeping the events of a stream costs: a tools/call in a session whose tool tells of progress five times. Each event is
// kept before it is sent: in memory, in a file with a sync for each, and in Redis.
import { CONFIG_IMPORTS } from '../contestants.ts'
import { callTool, withProgress } from '../requests.ts'
import { type Row, ratio } from '../row.ts'
import { IN_MEMORY, ON_SQLITE, onEachStore } from '../stores.ts'

const EVENTS = 5

const configText = (plugins: object) => `${CONFIG_IMPORTS}
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
  http: { port: Number(process.env.PORT ?? 0) },
  secrets: ['a secret of the benchmark, for nobody else'],
  ...(process.env.REDIS_URL && { redis: { url: process.env.REDIS_URL } }),
  toolsets: { reports: [report] },
  routes: { '/mcp': { toolsets: ['reports'] } },
  plugins: ${JSON.stringify(plugins)},
}
`

export const row: Row = {
  name: 'tools/call in a stored session, streamed',
  contestants: onEachStore({
    file: 'stored-stream',
    request: withProgress(callTool('report'), EVENTS),
    configText,
  }),
  targets: [ratio(ON_SQLITE, IN_MEMORY, '<=', 5)],
}
