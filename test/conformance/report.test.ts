// Tests the verdict of the conformance report: missing runs, warnings and skipped scenarios fail.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Check, formatTable, hasPassed, readResults } from './report.ts'

const check = (status: Check['status'], errorMessage?: string) => ({
  id: `check-${status.toLowerCase()}`,
  name: 'Check',
  description: 'What is checked',
  status,
  timestamp: '2026-07-28T10:00:00.000Z',
  ...(errorMessage !== undefined && { errorMessage }),
})

describe('conformance report', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'conformance-report-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  function write(name: string, content: unknown) {
    mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, name, 'checks.json'), JSON.stringify(content))
  }

  it('reads the checks of each scenario from the result folders of a server leg', () => {
    write('server-tools-list-2026-07-28T10-00-00-123Z', [check('SUCCESS')])
    write('server-server-stateless-2026-07-28T10-00-01-456Z', [check('SUCCESS'), check('FAILURE')])
    const results = readResults(folder, 'server-')
    expect([...results.keys()]).to.have.members(['tools-list', 'server-stateless'])
    expect(results.get('server-stateless')?.map(({ status }) => status)).to.deep.equal(['SUCCESS', 'FAILURE'])
  })

  it('reads scenario names with a slash', () => {
    write('auth/basic-cimd-2026-07-28T10-00-00-123Z', [check('SUCCESS')])
    expect([...readResults(folder, '').keys()]).to.deep.equal(['auth/basic-cimd'])
  })

  it('rejects a result file that is not a list of checks', () => {
    write('server-ping-2026-07-28T10-00-00-123Z', [{ id: 'ping', status: 'GREEN' }])
    expect(() => readResults(folder, 'server-')).to.throw('is not a list of checks')
  })

  it('rejects a result folder without a scenario name', () => {
    write('server-ping', [check('SUCCESS')])
    expect(() => readResults(folder, 'server-')).to.throw('names no scenario')
  })

  it('passes a scenario with successful, informational and skipped checks', () => {
    const checks = [check('SUCCESS'), check('INFO'), check('SKIPPED')]
    expect(hasPassed({ scenario: 'ping', checks })).to.equal(true)
  })

  for (const status of ['FAILURE', 'WARNING'] as const) {
    it(`fails a scenario with one ${status} and reports the reason`, () => {
      const result = { scenario: 'ping', checks: [check('SUCCESS'), check(status, 'no answer')] }
      expect(hasPassed(result)).to.equal(false)
      expect(formatTable([result])).to.include(`${status} check-${status.toLowerCase()}: no answer`)
    })
  }

  it('fails a scenario that did not run', () => {
    const result = { scenario: 'ping', checks: undefined }
    expect(hasPassed(result)).to.equal(false)
    expect(formatTable([result])).to.match(/ping .* FAILED\n +did not run/)
  })

  for (const [what, checks] of [
    ['no checks', []],
    ['only skipped checks', [check('SKIPPED'), check('INFO')]],
  ] as const) {
    it(`fails a scenario with ${what}`, () => {
      const result = { scenario: 'ping', checks }
      expect(hasPassed(result)).to.equal(false)
      expect(formatTable([result])).to.include('no check succeeded')
    })
  }

  it('lists the skipped checks of a passed scenario', () => {
    const table = formatTable([{ scenario: 'ping', checks: [check('SUCCESS'), check('SKIPPED')] }])
    expect(table).to.match(/^ping .* ok\n +SKIPPED check-skipped: What is checked$/m)
  })

  it('counts passed, failed, warned and skipped checks per scenario', () => {
    const checks = [check('SUCCESS'), check('SUCCESS'), check('FAILURE'), check('WARNING'), check('SKIPPED')]
    expect(formatTable([{ scenario: 'ping', checks }])).to.match(/^ping +2 +1 +1 +1 +FAILED$/m)
  })
})
