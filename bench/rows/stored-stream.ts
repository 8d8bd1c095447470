// What keeping the events of a stream costs: a tools/call in a session whose tool tells of progress five times. Each event is
// kept before it is sent: in memory, in a file with a sync for each, and in Redis.
import { callReportStreamed, reportsWith } from '../reports.ts'
import { type Row, ratio } from '../row.ts'
import { IN_MEMORY, ON_SQLITE, onEachStore, storedWith } from '../stores.ts'

export const row: Row = {
  name: 'tools/call in a stored session, streamed',
  contestants: onEachStore({
    file: 'stored-stream',
    request: callReportStreamed,
    configText: plugins => reportsWith(storedWith(plugins)),
  }),
  targets: [ratio(ON_SQLITE, IN_MEMORY, '<=', 5)],
}
