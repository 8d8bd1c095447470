// A server leg: the suite as a client of a host with mcp.config.ts, or of three hosts behind nginx.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBalanced } from '../cluster/support/balanced-deployment.ts'
import type { BundledFile } from '../support/compiled.ts'
import { inPath } from '../support/needs-program.ts'
import { type HostSettings, startHost } from './host-process.ts'
import { type Check, readResults, type ScenarioResult } from './report.ts'
import { readRequired, runToEnd, type Suite } from './suite.ts'

const CONFIG = 'test/conformance/mcp.config.ts'
const TASKS_CONFIG = 'test/conformance/tasks.config.ts'
/** Milliseconds for one leg. */
const LIMIT = 600_000

/** The suite against what serves at `url`. */
async function runSuite(
  suite: Suite,
  folder: string,
  set: string,
  extra: readonly string[],
  url: string,
): Promise<ScenarioResult[]> {
  const required = readRequired(suite, set, 'server')
  const results = join(folder, 'results')
  mkdirSync(results, { recursive: true })
  const log = join(folder, 'suite.log')
  const args = [suite.entry, 'server', '--url', `${url}/mcp`, '--requirements', set, '--output-dir', results]
  // Its exit code knows nothing of warnings and of what is not scored: the files it wrote decide.
  await runToEnd(suite.node, args, log, LIMIT)
  const found = readResults(results, 'server-')
  if (found.size === 0) throw new Error(`the suite ran no scenario:\n${readFileSync(log, 'utf8').trim()}`)
  return [...required, ...extra].map(scenario => ({ scenario, checks: found.get(scenario) }))
}

/**
 * Runs all that `set` requires of a server, and of what it does not score the `extra` ones. With `--requirements` the
 * suite runs what is not scored too; only the `extra` of that count.
 */
export async function runServerLeg(
  suite: Suite,
  folder: string,
  set: string,
  extra: readonly string[],
  settings: HostSettings = {},
): Promise<ScenarioResult[]> {
  const host = await startHost(CONFIG, join(folder, 'host.log'), settings)
  try {
    return await runSuite(suite, folder, set, extra, host.url)
  } finally {
    if (!(await host.stop())) console.log('the host did not end on SIGTERM and was killed')
  }
}

/**
 * Scenarios of an extension, which no set requires: each is a run of its own, and a check that is skipped fails it. `idle`: one
 * that this release of the suite skips without asking a server anything; once it asks, it counts as one more.
 */
export interface ExtensionScenarios {
  readonly scenarios: readonly string[]
  readonly idle?: string
}

/** Those of tasks against what serves at `url`. */
async function runTasks(suite: Suite, folder: string, { scenarios, idle }: ExtensionScenarios, url: string) {
  const results = join(folder, 'results')
  mkdirSync(results, { recursive: true })
  const all = idle === undefined ? scenarios : [...scenarios, idle]
  for (const scenario of all) {
    const args = [suite.entry, 'server', '--url', `${url}/mcp`, '--scenario', scenario, '--output-dir', results]
    await runToEnd(suite.node, args, join(folder, 'suite.log'), LIMIT)
  }
  const found = readResults(results, 'server-')
  const isIdle = idle !== undefined && found.get(idle)?.every(({ status }) => status === 'SKIPPED')
  const counted = isIdle ? scenarios : all
  return counted.map(scenario => ({ scenario, checks: found.get(scenario)?.map(failSkipped) }))
}

/** Those of tasks, which one process keeps in memory. */
export async function runTasksLeg(
  suite: Suite,
  folder: string,
  scenarios: ExtensionScenarios,
  settings: HostSettings = {},
) {
  const host = await startHost(TASKS_CONFIG, join(folder, 'host.log'), settings)
  try {
    return await runTasks(suite, folder, scenarios, host.url)
  } finally {
    if (!(await host.stop())) console.log('the host did not end on SIGTERM and was killed')
  }
}

/** The same where tasks are in a file that two workers share. */
export const runSqliteTasksLeg = (suite: Suite, folder: string, scenarios: ExtensionScenarios) =>
  runTasksLeg(suite, folder, scenarios, { env: fileEnv(folder), args: ['--workers', '2'] })

/** The same where tasks are in Redis, and each request goes to the next of three nodes. */
export const runBalancedTasksLeg = (suite: Suite, folder: string, scenarios: ExtensionScenarios) =>
  behindNginx(folder, TASKS_CONFIG, url => runTasks(suite, folder, scenarios, url))

const failSkipped = (check: Check): Check => (check.status === 'SKIPPED' ? { ...check, status: 'FAILURE' } : check)

/** The same where the store is a file that three workers share. */
export const runSqliteLeg = (suite: Suite, folder: string, set: string, extra: readonly string[]) =>
  runServerLeg(suite, folder, set, extra, { env: fileEnv(folder), args: ['--workers', '3'] })

const fileEnv = (folder: string) => ({
  STORE_FILE: join(folder, 'host.db'),
  MCP_HOST_SECRETS: randomBytes(32).toString('base64'),
})

/** The same through nginx, which gives each request to the next of three nodes. */
export const runBalancedLeg = (suite: Suite, folder: string, set: string, extra: readonly string[]) =>
  behindNginx(folder, CONFIG, url => runSuite(suite, folder, set, extra, url))

/** What runs against three nodes of a config, each of which must have served something. */
async function behindNginx(folder: string, config: BundledFile, run: (url: string) => Promise<ScenarioResult[]>) {
  for (const program of ['redis-server', 'nginx']) {
    if (!inPath(program)) throw new Error(`${program} is not in PATH: apt-get install ${program}`)
  }
  const balanced = await startBalanced({ config, nodes: 3 })
  try {
    const results = await run(balanced.url)
    const counts = [...balanced.nginx.counts().values()]
    console.log(`requests: ${balanced.describeCounts()}\n`)
    if (counts.some(count => count === 0)) throw new Error('a node served nothing; nothing was shown')
    for (const [at, { output }] of balanced.nodes.entries()) writeFileSync(join(folder, `node-${at + 1}.log`), output)
    return results
  } finally {
    await balanced.stop()
  }
}
