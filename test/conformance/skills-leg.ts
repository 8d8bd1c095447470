// The Skills leg: the scenarios of the extension against a host with the skills of the example. No requirement set of
// the suite includes them. A skipped check counts as failed.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startHost } from './host-process.ts'
import { type Check, readResults, type ScenarioResult } from './report.ts'
import { runToEnd, type Suite } from './suite.ts'

const CONFIG = 'test/conformance/skills.config.ts'
const SCENARIOS = ['sep-2640-skills-enumeration', 'sep-2640-skills-manifest', 'sep-2640-skills-directory']
/** Milliseconds for one scenario. */
const LIMIT = 60_000

const counted = (check: Check): Check => (check.status === 'SKIPPED' ? { ...check, status: 'FAILURE' } : check)

/** Runs each scenario of the extension; without a version of the protocol, or the suite would leave them out. */
export async function runSkillsLeg(suite: Suite, folder: string): Promise<ScenarioResult[]> {
  const host = await startHost(CONFIG, join(folder, 'host.log'))
  const results = join(folder, 'results')
  mkdirSync(results, { recursive: true })
  try {
    for (const scenario of SCENARIOS) {
      const args = ['server', '--url', `${host.url}/mcp`, '--scenario', scenario, '--output-dir', results]
      await runToEnd(suite.node, [suite.entry, ...args], join(folder, 'suite.log'), LIMIT)
    }
  } finally {
    if (!(await host.stop())) console.log('the host did not end on SIGTERM and was killed')
  }
  const found = readResults(results, 'server-')
  return SCENARIOS.map(scenario => ({ scenario, checks: found.get(scenario)?.map(counted) }))
}
