// `npm run conformance`: the official suite against a host that serves mcp.config.ts, one leg after the other.
// Fails on any failed or warning check, on a scenario that did not run, and when suite or host cannot start.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorText } from '../../core/errors.ts'
import { startHost } from './host-process.ts'
import { formatTable, hasPassed, readResults, type ScenarioResult } from './report.ts'
import { findSuite, readRequired, runToEnd, type Suite } from './suite.ts'

/** One run of the suite: all that `set` requires of this side, and of what it does not score the `extra` ones. */
interface Leg {
  readonly leg: 'server'
  readonly set: string
  readonly extra: readonly string[]
}

const LEGS: readonly Leg[] = [
  {
    leg: 'server',
    set: '2025-11-25',
    extra: ['server-session-lifecycle', 'server-sse-polling', 'json-schema-2020-12'],
  },
  {
    leg: 'server',
    set: '2026-07-28',
    extra: ['json-schema-2020-12', 'http-header-validation', 'http-custom-header-server-validation'],
  },
]

const CONFIG = 'test/conformance/mcp.config.ts'
/** Milliseconds for one leg. */
const LEG_LIMIT = 600_000

/** Runs one leg. With `--requirements` the suite runs what it does not score too; only the `extra` of that count. */
async function runLeg(suite: Suite, { leg, set, extra }: Leg, folder: string): Promise<ScenarioResult[]> {
  const required = readRequired(suite, set, leg)
  const results = join(folder, 'results')
  mkdirSync(results, { recursive: true })
  const log = join(folder, 'suite.log')
  const host = await startHost(CONFIG, join(folder, 'host.log'))
  try {
    const args = [suite.entry, leg, '--url', `${host.url}/mcp`, '--requirements', set, '--output-dir', results]
    // Its exit code knows nothing of warnings and of what is not scored: the files it wrote decide.
    await runToEnd(suite.node, args, log, LEG_LIMIT)
  } finally {
    if (!(await host.stop())) console.log('the host did not end on SIGTERM and was killed')
  }
  const found = readResults(results, 'server-')
  if (found.size === 0) throw new Error(`the suite ran no scenario:\n${readFileSync(log, 'utf8').trim()}`)
  return [...required, ...extra].map(scenario => ({ scenario, checks: found.get(scenario) }))
}

async function main(folder: string): Promise<boolean> {
  const suite = await findSuite(folder)
  const all: ScenarioResult[] = []
  for (const leg of LEGS) {
    const name = `${leg.leg} ${leg.set}`
    console.log(`conformance ${name}\n`)
    const results = await runLeg(suite, leg, join(folder, name.replace(' ', '-')))
    const passed = results.filter(hasPassed).length
    console.log(formatTable(results))
    console.log(
      `\nconformance ${name}: ${results.length} scenarios, ${passed} passed, ${results.length - passed} failed`,
    )
    all.push(...results)
  }
  const passed = all.filter(hasPassed).length
  const failed = all.length - passed
  if (failed > 0) console.log(`logs and results: ${folder}`)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0
}

const folder = mkdtempSync(join(tmpdir(), 'mcp-conformance-'))
// A signal must run the `exit` listeners too, which end the host and the suite.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
try {
  const passed = await main(folder)
  if (passed) rmSync(folder, { recursive: true, force: true })
  process.exit(passed ? 0 : 1)
} catch (thrown) {
  console.error(`conformance could not run: ${errorText(thrown)}\nlogs: ${folder}`)
  process.exit(1)
}
