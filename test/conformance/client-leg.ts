// A client leg: the suite acts as server and authorization server for client.ts. Each scenario is a separate run of the
// suite, because only the exit code shows whether the client ended correctly and in time.
import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { bundledFile } from '../support/compiled.ts'
import { type Check, hasPassed, readResults, type ScenarioResult } from './report.ts'
import { runToEnd, type Suite } from './suite.ts'

/** The suite hands this to a shell. */
const COMMAND = [process.execPath, bundledFile('test/conformance/client.ts')].map(part => `"${part}"`).join(' ')
/** Milliseconds for the client of one scenario, and for the scenario around it. */
const CLIENT_LIMIT = 60_000
const LIMIT = 90_000

/** A run that ended badly although no check failed: its client crashed or hung. */
function brokenOff(exitCode: number | null, log: string): Check {
  const errorMessage = `the suite ended with ${exitCode ?? 'a signal'}: the client failed or did not end; see ${log}`
  return { id: 'client-ended-well', status: 'FAILURE', errorMessage }
}

async function runScenario(suite: Suite, folder: string, scenario: string, set?: string): Promise<ScenarioResult> {
  const results = join(folder, scenario.replaceAll('/', '-'))
  mkdirSync(results, { recursive: true })
  const log = join(results, 'suite.log')
  const limits = ['--timeout', String(CLIENT_LIMIT), '--output-dir', results]
  const version = set === undefined ? [] : ['--spec-version', set]
  const args = [suite.entry, 'client', '--command', COMMAND, '--scenario', scenario, ...limits, ...version]
  const exitCode = await runToEnd(suite.node, args, log, LIMIT)
  const checks = readResults(results, '').get(scenario)
  const result = { scenario, checks }
  if (checks === undefined || exitCode === 0 || !hasPassed(result)) return result
  return { scenario, checks: [...checks, brokenOff(exitCode, log)] }
}

/**
 * Runs these scenarios, some at a time, at the revision `set`. Extensions belong to no revision: with one the suite
 * would skip them, so theirs is undefined.
 */
export async function runClientLeg(
  suite: Suite,
  folder: string,
  scenarios: readonly string[],
  set?: string,
): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = []
  const waiting = [...scenarios.entries()]
  async function work() {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, scenario] = next
      results[index] = await runScenario(suite, folder, scenario, set)
    }
  }
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, work))
  return results
}
