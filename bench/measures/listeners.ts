// How soon ten thousand listeners know of one change. The client is a process of its own on the other core; its clock runs
// from the call that makes the change until the last listener has read of it, so that its own reading counts, too: the
// server was done before. What the change cost the server is read from the system.
import type { ListenersFound } from '../clients/listeners.ts'
import { judgeClock } from '../judge.ts'
import type { Measure } from '../measure.ts'
import { runClient, startServer } from '../processes.ts'
import { startToldHost } from '../told-host.ts'

const LISTENERS = 10_000
const LIMIT_MS = 250

export const measure: Measure = {
  name: 'listeners',
  quick: true,
  async run({ scratch, signal, quick }) {
    const listeners = quick ? LISTENERS / 2 : LISTENERS
    const server = await startServer(startToldHost(scratch), signal)
    try {
      const asked = { url: server.url, pid: server.pid, listeners, changes: quick ? 3 : 7 }
      const { half, last, serverCpu } = await runClient<ListenersFound>('listeners.ts', JSON.stringify(asked), signal)
      const text = `one change reaches ${listeners.toLocaleString('en')} listeners within ${(LIMIT_MS * listeners) / LISTENERS} ms`
      return {
        figures: [
          { what: 'half of them have read of it', unit: 'ms', values: half },
          { what: 'all have read of it', unit: 'ms', values: last },
          { what: "the server's CPU time for a change", unit: 'ms', values: [serverCpu] },
        ],
        targets: [judgeClock(text, last, '<=', (LIMIT_MS * listeners) / LISTENERS)],
        notes: [],
      }
    } finally {
      await server.stop()
    }
  },
}
