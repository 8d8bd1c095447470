// What becomes of two thousand connections that are opened at once, each with a call on it: none may be refused or wait for
// a packet to be sent again. Linux counts what its queue had no room for (/proc/net/netstat); that is of the whole machine.
import { existsSync, readFileSync } from 'node:fs'
import type { ConnectionsFound } from '../clients/connections.ts'
import { ours } from '../contestants.ts'
import { judgeClock } from '../judge.ts'
import type { Measure } from '../measure.ts'
import { runClient, startServer } from '../processes.ts'
import { callEcho } from '../requests.ts'

const CONNECTIONS = 2_000
const COUNTERS = '/proc/net/netstat'

/** How often the queue of a listener was full so far; NaN where the system does not tell. */
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
    const server = await startServer(ours(1, callEcho).command(scratch), signal)
    try {
      const rounds: (ConnectionsFound & { overflows: number })[] = []
      for (let round = 0; round < (quick ? 2 : 5); round++) {
        const before = readOverflows()
        const asked = { url: server.url, connections: CONNECTIONS }
        const found = await runClient<ConnectionsFound>('connections.ts', JSON.stringify(asked), signal)
        rounds.push({ ...found, overflows: readOverflows() - before })
      }
      const reasons = [...new Set(rounds.flatMap(({ reasons }) => reasons))]
      const text = `of ${CONNECTIONS.toLocaleString('en')} at once, refused or late: 0`
      return {
        figures: [
          { what: 'refused, or without an answer', unit: '', values: rounds.map(({ failed }) => failed) },
          { what: 'connected at the second try of the system', unit: '', values: rounds.map(({ late }) => late) },
          { what: 'times that the queue was full', unit: '', values: rounds.map(({ overflows }) => overflows) },
          { what: 'the last one is answered', unit: 'ms', values: rounds.map(({ last }) => last) },
        ],
        targets: [
          judgeClock(
            text,
            rounds.map(({ failed, late }) => failed + late),
            '<=',
            0,
          ),
        ],
        notes: reasons.length > 0 ? [`failures said ${reasons.join(', ')}`] : [],
      }
    } finally {
      await server.stop()
    }
  },
}
