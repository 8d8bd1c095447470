// Tests memory use of `mcp-host report` with a long log, in which every line has new names.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { Tally } from '../../cli/report/tally.ts'
import { oldLine } from '../cli/report/log-lines.ts'

/** Divisible by 6. */
const LINES = 60_000
/** Bytes of the heap. Measured: 2 MB; 17 MB if the name of every tool is kept. */
const ROOM = 6_000_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const usedBytes = () => {
  collect()
  return process.memoryUsage().heapUsed
}

describe(`mcp-host report on ${LINES} lines`, () => {
  it('counts correctly and uses limited memory', () => {
    const tally = new Tally({ since: -Infinity, until: Infinity, future: Infinity })
    const before = usedBytes()
    for (let index = 0; index < LINES; index++) {
      const name = `n${index}`
      const client = index % 3 === 0 ? `old ${index}` : 'often 1.0'
      const tool = index % 2 === 0 ? name : 'say'
      const fields = { name: tool, ms: index % 1_000, user: name, error: 'internal', reason: name }
      tally.line(oldLine('2026-11-20T10:00:00.000Z', client, fields))
    }
    expect(usedBytes() - before).to.be.below(ROOM)
    const { calls, legacy, busiest, users } = tally.report(5, [])
    expect(calls).to.equal(LINES)
    expect(busiest[0]).to.include({ tool: 'say', calls: LINES / 2 })
    expect(legacy.clients[0]).to.include({ client: 'often 1.0', calls: (LINES / 3) * 2 })
    expect(legacy.clients.reduce((sum, row) => sum + row.calls, legacy.notListed)).to.equal(LINES)
    expect(users?.count).to.be.within(LINES * 0.9, LINES * 1.1)
  })
})
