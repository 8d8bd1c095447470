// A server leg: the suite, as a client, against a host that serves mcp.config.ts.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startHost } from './host-process.ts'
import { readResults, type ScenarioResult } from './report.ts'
import { readRequired, runToEnd, type Suite } from './suite.ts'

const CONFIG = 'test/conformance/mcp.config.ts'
/** Milliseconds for one leg. */
const LIMIT = 600_000

/**
 * Runs all that `set` requires of a server, and of what it does not score the `extra` ones. With `--requirements` the
 * suite runs what is not scored too; only the `extra` of that count.
 */
export async function runServerLeg(
  suite: Suite,
  folder: string,
  set: string,
  extra: readonly string[],
): Promise<ScenarioResult[]> {
  const required = readRequired(suite, set, 'server')
  const results = join(folder, 'results')
  mkdirSync(results, { recursive: true })
  const log = join(folder, 'suite.log')
  const host = await startHost(CONFIG, join(folder, 'host.log'))
  try {
    const args = [suite.entry, 'server', '--url', `${host.url}/mcp`, '--requirements', set, '--output-dir', results]
    // Its exit code knows nothing of warnings and of what is not scored: the files it wrote decide.
    await runToEnd(suite.node, args, log, LIMIT)
  } finally {
    if (!(await host.stop())) console.log('the host did not end on SIGTERM and was killed')
  }
  const found = readResults(results, 'server-')
  if (found.size === 0) throw new Error(`the suite ran no scenario:\n${readFileSync(log, 'utf8').trim()}`)
  return [...required, ...extra].map(scenario => ({ scenario, checks: found.get(scenario) }))
}
