// A tool that reports progress before its result, so that its response is streamed if the request has a progress token.
import { CONFIG_IMPORTS } from './contestants.ts'
import { callTool, withProgress } from './requests.ts'

/** Number of progress events before the result. */
export const EVENTS = 5

export const callReport = callTool('report')
export const callReportStreamed = withProgress(callReport, EVENTS)

/** `otherKeys`: source text of the other config keys. */
export const reportConfig = (otherKeys: string) => `${CONFIG_IMPORTS}
const report = defineTool({
  name: 'report',
  description: 'Returns its message after progress events.',
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
  ${otherKeys}
}
`
