// Tests the client part of the conformance run with a fake suite: a crashed client fails its scenario.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runClientLeg } from './client-leg.ts'
import { formatTable, hasPassed } from './report.ts'

/** Behaves as its scenario's name says; its one check tells the arguments that it was given. */
const SUITE = `
import { mkdirSync, writeFileSync } from 'node:fs'
const args = process.argv.slice(2)
const after = name => args[args.indexOf(name) + 1]
const scenario = after('--scenario')
const folder = after('--output-dir') + '/' + scenario + '-2026-07-28T10-00-00-123Z'
if (!scenario.includes('silent')) {
  const status = scenario.includes('warned') ? 'WARNING' : 'SUCCESS'
  mkdirSync(folder, { recursive: true })
  writeFileSync(folder + '/checks.json', JSON.stringify([{ id: 'ran', status: 'SUCCESS', description: args.join(' ') }, { id: 'b', status }]))
}
process.exit(scenario.includes('fine') ? 0 : 1)
`

describe('conformance client leg', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'conformance-client-'))
    writeFileSync(join(folder, 'suite.mjs'), SUITE)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const run = (scenarios: readonly string[], set?: string) =>
    runClientLeg({ node: process.execPath, entry: join(folder, 'suite.mjs') }, folder, scenarios, set)

  it('returns one result per scenario in order', async () => {
    const scenarios = ['auth/fine-1', 'auth/crashed', 'auth/warned', 'auth/silent', 'fine-2']
    const results = await run(scenarios)
    expect(results.map(({ scenario }) => scenario)).to.deep.equal(scenarios)
    expect(results.map(hasPassed)).to.deep.equal([true, false, false, false, true])
  })

  it('fails a scenario with successful checks when its client fails, and names the log', async () => {
    const results = await run(['auth/crashed'])
    expect(formatTable(results)).to.match(/FAILURE client-ended-well: the suite ended with 1.*suite\.log/)
  })

  it('passes the protocol version, except for extensions', async () => {
    const argumentsOf = async (set?: string) => (await run(['fine'], set))[0]?.checks?.[0]?.description
    expect(await argumentsOf('2026-07-28')).to.match(/^client --command .*client\.js.* --spec-version 2026-07-28$/)
    rmSync(join(folder, 'fine'), { recursive: true })
    expect(await argumentsOf()).to.not.include('--spec-version')
  })
})
