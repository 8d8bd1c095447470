// Compares a tools/call with five progress events to the same call without a progress token, which returns JSON.
import { mcpHostWith } from '../contestants.ts'
import { callReport, callReportStreamed, EVENTS, reportConfig } from '../progress-tool.ts'
import { type Row, ratio } from '../row.ts'

const CONFIG = reportConfig("http: { port: 0 }, plugins: { 'transport-streamable': {} },")

export const row: Row = {
  name: 'tools/call, streamed',
  contestants: [
    mcpHostWith('ours, JSON', 'json', CONFIG, callReport),
    mcpHostWith(`ours, ${EVENTS} events`, 'streamed', CONFIG, callReportStreamed),
  ],
  targets: [ratio(`ours, ${EVENTS} events`, 'ours, JSON', '<=', 3)],
  quick: ['ours, JSON', `ours, ${EVENTS} events`],
}
