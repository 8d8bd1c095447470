// A tool whose answer is streamed: it tells of progress before its result, where that was asked for.
import { CONFIG_IMPORTS } from './contestants.ts'
import { callTool, withProgress } from './requests.ts'

/** Before the result. */
export const EVENTS = 5

export const callReport = callTool('report')
export const callReportStreamed = withProgress(callReport, EVENTS)

/** The text of a config that serves it at /mcp; `more`: the config's other keys, as they are written. */
export const reportsWith = (more: string) => `${CONFIG_IMPORTS}
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
  toolsets: { reports: [report] },
  routes: { '/mcp': { toolsets: ['reports'] } },
  ${more}
}
`
