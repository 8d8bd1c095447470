// What a streamed answer costs: a tools/call of 2026-07-28 whose tool tells of progress five times before its result.
// The calls answered with JSON do the same work and ask for no progress.
import { oursWith } from '../contestants.ts'
import { callReport, callReportStreamed, EVENTS, reportsWith } from '../reports.ts'
import { type Row, ratio } from '../row.ts'

const CONFIG = reportsWith("http: { port: 0 }, plugins: { 'transport-streamable': {} },")

export const row: Row = {
  name: 'tools/call, streamed',
  contestants: [
    oursWith('ours, JSON', 'answered', CONFIG, callReport),
    oursWith(`ours, ${EVENTS} events`, 'streamed', CONFIG, callReportStreamed),
  ],
  targets: [ratio(`ours, ${EVENTS} events`, 'ours, JSON', '<=', 3)],
  quick: ['ours, JSON', `ours, ${EVENTS} events`],
}
