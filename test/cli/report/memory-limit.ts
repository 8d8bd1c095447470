// Checks a log with new names in every line: counts stay correct, and memory stays limited.
import { expect } from 'chai'
import { Tally } from '../../../cli/report/tally.ts'
import { oldLine } from './log-lines.ts'

/** Bytes; far less than the names would take. */
const ROOM = 150 * 1024 * 1024

/** `lines`: divisible by 6. */
export function keepsItsRoom(lines: number): void {
  const tally = new Tally({ since: -Infinity, until: Infinity, future: Infinity })
  const before = process.memoryUsage().heapUsed
  for (let index = 0; index < lines; index++) {
    const name = `n${index}`
    const client = index % 3 === 0 ? `old ${index}` : 'often 1.0'
    const tool = index % 2 === 0 ? name : 'say'
    const fields = { name: tool, ms: index % 1_000, user: name, error: 'internal', reason: name }
    tally.line(oldLine('2026-11-20T10:00:00.000Z', client, fields))
  }
  const { calls, legacy, busiest, users } = tally.report(5, [])
  expect(process.memoryUsage().heapUsed - before).to.be.below(ROOM)
  expect(calls).to.equal(lines)
  expect(busiest[0]).to.include({ tool: 'say', calls: lines / 2 })
  expect(legacy.clients[0]).to.include({ client: 'often 1.0', calls: (lines / 3) * 2 })
  expect(legacy.clients.reduce((sum, row) => sum + row.calls, legacy.notListed)).to.equal(lines)
  expect(users?.count).to.be.within(lines * 0.9, lines * 1.1)
}
