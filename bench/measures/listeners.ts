// Measures how long it takes to notify 10,000 listeners of one change, from the call until the client has read the last
// notification. The time includes the reads of the client, so the server finishes earlier.
import type { ListenersResult } from '../clients/listeners.ts'
import type { Measure } from '../measure.ts'
import { notifyingHostCommand } from '../notifying-host.ts'
import { runClient, startServer } from '../processes.ts'
import { checkTimeTarget } from '../targets.ts'

const LISTENERS = 10_000
const LIMIT_MS = 250

export const measure: Measure = {
  name: 'listeners',
  quick: true,
  async run({ scratch, signal, quick }) {
    const listeners = quick ? LISTENERS / 2 : LISTENERS
    const server = await startServer(notifyingHostCommand(scratch), signal)
    try {
      const options = { url: server.url, pid: server.pid, listeners, changes: quick ? 3 : 7 }
      const { half, all, serverCpu } = await runClient<ListenersResult>('listeners.ts', JSON.stringify(options), signal)
      const limit = (LIMIT_MS * listeners) / LISTENERS
      const text = `${listeners.toLocaleString('en')} listeners notified within ${limit} ms`
      return {
        figures: [
          { what: 'half of the listeners notified', unit: 'ms', values: half },
          { what: 'all listeners notified', unit: 'ms', values: all },
          { what: 'CPU time of the server per change', unit: 'ms', values: [serverCpu] },
        ],
        targets: [checkTimeTarget(text, all, '<=', limit)],
        notes: [],
      }
    } finally {
      await server.stop()
    }
  },
}
