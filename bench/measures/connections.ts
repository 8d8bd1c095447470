// Opens 2,000 connections at once with one call on each: none may be refused or need a retransmission.
// Linux counts listen queue overflows (/proc/net/netstat) for the whole machine.
import { existsSync, readFileSync } from 'node:fs'
import type { ConnectionsResult } from '../clients/connections.ts'
import { mcpHost } from '../contestants.ts'
import type { Measure } from '../measure.ts'
import { runClient, startServer } from '../processes.ts'
import { callEcho } from '../requests.ts'
import { checkTimeTarget } from '../targets.ts'

const CONNECTIONS = 2_000
const COUNTERS = '/proc/net/netstat'

/** Number of listen queue overflows so far. NaN if the system does not report it. */
function readOverflows(): number {
  if (!existsSync(COUNTERS)) return Number.NaN
  const [names, values] = readFileSync(COUNTERS, 'utf8')
    .split('\n')
    .filter(line => line.startsWith('TcpExt:'))
    .map(line => line.split(' '))
  return Number(values?.[names?.indexOf('ListenOverflows') ?? -1])
}

export const measure: Measure = {
  name: 'connections',
  quick: true,
  async run({ scratch, signal, quick }) {
    const server = await startServer(mcpHost(1, callEcho).command(scratch), signal)
    try {
      const rounds: (ConnectionsResult & { overflows: number })[] = []
      for (let round = 0; round < (quick ? 2 : 5); round++) {
        const before = readOverflows()
        const options = { url: server.url, connections: CONNECTIONS }
        const result = await runClient<ConnectionsResult>('connections.ts', JSON.stringify(options), signal)
        rounds.push({ ...result, overflows: readOverflows() - before })
      }
      const errors = [...new Set(rounds.flatMap(({ errors }) => errors))]
      const text = `${CONNECTIONS.toLocaleString('en')} simultaneous connections, refused or late: 0`
      return {
        figures: [
          { what: 'refused, or without a response', unit: '', values: rounds.map(({ failed }) => failed) },
          { what: 'connected after a retransmission', unit: '', values: rounds.map(({ late }) => late) },
          { what: 'listen queue overflows', unit: '', values: rounds.map(({ overflows }) => overflows) },
          { what: 'time until the last response', unit: 'ms', values: rounds.map(({ last }) => last) },
        ],
        targets: [
          checkTimeTarget(
            text,
            rounds.map(({ failed, late }) => failed + late),
            '<=',
            0,
          ),
        ],
        notes: errors.length > 0 ? [`errors: ${errors.join(', ')}`] : [],
      }
    } finally {
      await server.stop()
    }
  },
}
