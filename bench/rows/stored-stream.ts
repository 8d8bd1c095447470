// Compares a streamed tools/call with events in memory, in SQLite and in Redis. Each event is stored before it is sent,
// with a disk sync in SQLite.
import { callReportStreamed, reportConfig } from '../progress-tool.ts'
import { type Row, ratio } from '../row.ts'
import { contestantsPerStore, MEMORY, SQLITE, storeConfigKeys } from '../session-stores.ts'

export const row: Row = {
  name: 'tools/call in a stored session, streamed',
  contestants: contestantsPerStore({
    file: 'stored-stream',
    request: callReportStreamed,
    createConfig: plugins => reportConfig(storeConfigKeys(plugins)),
  }),
  targets: [ratio(SQLITE, MEMORY, '<=', 5)],
}
