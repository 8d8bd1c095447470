// `npm run conformance`: runs the official suite against a host with mcp.config.ts, client.ts and auth-bridge, leg by
// leg. `npm run conformance client` runs the legs whose names start with it. Fails on a failed or warning check, a
// scenario that did not run, and a failed start.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorText } from '../../core/http/errors.ts'
import { HAS_SQLITE } from '../sqlite/support/sqlite.ts'
import { runAuthorizationServerLeg } from './authorization-server-leg.ts'
import { runClientLeg } from './client-leg.ts'
import { formatTable, hasPassed, type ScenarioResult } from './report.ts'
import {
  type ExtensionScenarios,
  runBalancedLeg,
  runBalancedTasksLeg,
  runServerLeg,
  runSqliteLeg,
  runSqliteTasksLeg,
  runTasksLeg,
} from './server-leg.ts'
import { runSkillsLeg } from './skills-leg.ts'
import { findSuite, readRequired, type Suite } from './suite.ts'

interface Leg {
  readonly name: string
  /** How many scenarios it must run, so that a list that shrinks is noticed. */
  readonly scenarios: number
  run(suite: Suite, folder: string): Promise<ScenarioResult[]>
}

const serverLeg = (set: string, scenarios: number, extra: readonly string[]): Leg => ({
  name: `server ${set}`,
  scenarios,
  run: (suite, folder) => runServerLeg(suite, folder, set, extra),
})

const SESSION_EXTRAS = ['server-session-lifecycle', 'server-sse-polling', 'json-schema-2020-12']

const isAuth = (scenario: string) => scenario.startsWith('auth/')

/** Where this Node has `node:sqlite`. */
const sqliteLeg: Leg = {
  name: 'sqlite server 2025-11-25, 3 workers',
  scenarios: 33,
  run: (suite, folder) => runSqliteLeg(suite, folder, '2025-11-25', SESSION_EXTRAS),
}

/** What a set requires of a client: of its authorization, or of all else. */
const clientLeg = (part: 'auth' | 'protocol', set: string, scenarios: number, extra: readonly string[] = []): Leg => ({
  name: `client ${part} ${set}`,
  scenarios,
  run(suite, folder) {
    const required = readRequired(suite, set, 'client').filter(scenario => isAuth(scenario) === (part === 'auth'))
    return runClientLeg(suite, folder, [...required, ...extra], set)
  },
})

const EXTENSIONS = [
  'auth/client-credentials-basic',
  'auth/client-credentials-jwt',
  'auth/enterprise-managed-authorization',
  'auth/wif-jwt-bearer',
  'auth/dpop',
  'auth/dpop-nonce',
]
const BACKWARD = ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback']

/** Those of the extension io.modelcontextprotocol/tasks. */
const TASKS: ExtensionScenarios = {
  idle: 'tasks-status-notifications',
  scenarios: [
    'tasks-lifecycle',
    'tasks-capability-negotiation',
    'tasks-wire-fields',
    'tasks-request-state-removal',
    'tasks-mrtr-input',
    'tasks-request-headers',
    'tasks-dispatch-and-envelope',
    'tasks-required-task-error',
    'tasks-mrtr-composition',
  ],
}

/** The scenarios whose results depend on the store. The others check single requests, so only the leg with memory runs them. */
const STORED_TASKS: ExtensionScenarios = {
  scenarios: ['tasks-lifecycle', 'tasks-wire-fields', 'tasks-mrtr-input', 'tasks-mrtr-composition'],
}

const tasksLeg = (name: string, run: typeof runBalancedTasksLeg, extension = STORED_TASKS): Leg => ({
  name,
  scenarios: extension.scenarios.length,
  run: (suite, folder) => run(suite, folder, extension),
})

const LEGS: readonly Leg[] = [
  serverLeg('2025-11-25', 33, SESSION_EXTRAS),
  serverLeg('2026-07-28', 40, [
    'json-schema-2020-12',
    'http-header-validation',
    'http-custom-header-server-validation',
  ]),
  {
    name: 'server 2025-11-25 through nginx, 3 nodes',
    scenarios: 33,
    run: (suite, folder) => runBalancedLeg(suite, folder, '2025-11-25', SESSION_EXTRAS),
  },
  tasksLeg('tasks', runTasksLeg, TASKS),
  tasksLeg('tasks through nginx, 3 nodes', runBalancedTasksLeg),
  ...(HAS_SQLITE ? [sqliteLeg, tasksLeg('sqlite tasks, 2 workers', runSqliteTasksLeg)] : []),
  { name: 'skills', scenarios: 3, run: runSkillsLeg },
  clientLeg('auth', '2025-11-25', 14),
  clientLeg('auth', '2026-07-28', 25),
  {
    name: 'client auth extensions',
    scenarios: 6,
    run: (suite, folder) => runClientLeg(suite, folder, EXTENSIONS),
  },
  {
    name: 'client auth 2025-03-26',
    scenarios: 2,
    run: (suite, folder) => runClientLeg(suite, folder, BACKWARD, '2025-03-26'),
  },
  clientLeg('protocol', '2025-11-25', 5, ['json-schema-2020-12-preservation']),
  clientLeg('protocol', '2026-07-28', 8, ['json-schema-2020-12-preservation']),
  { name: 'authorization-server', scenarios: 4, run: runAuthorizationServerLeg },
]

async function runLeg(suite: Suite, { name, scenarios, run }: Leg, folder: string): Promise<ScenarioResult[]> {
  console.log(`conformance ${name}\n`)
  mkdirSync(folder, { recursive: true })
  const results = await run(suite, folder)
  if (results.length !== scenarios) {
    throw new Error(`${name} ran ${results.length} scenarios instead of ${scenarios}; the suite's lists have changed`)
  }
  const passed = results.filter(hasPassed).length
  console.log(formatTable(results))
  console.log(`\nconformance ${name}: ${scenarios} scenarios, ${passed} passed, ${scenarios - passed} failed`)
  return results
}

async function main(folder: string, wanted: string): Promise<boolean> {
  const legs = LEGS.filter(({ name }) => name.startsWith(wanted))
  if (legs.length === 0) throw new Error(`no leg starts with "${wanted}": ${LEGS.map(({ name }) => name).join(', ')}`)
  const suite = await findSuite(folder)
  const all: ScenarioResult[] = []
  for (const leg of legs) all.push(...(await runLeg(suite, leg, join(folder, leg.name.replaceAll(' ', '-')))))
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
  const passed = await main(folder, process.argv.slice(2).join(' '))
  if (passed) rmSync(folder, { recursive: true, force: true })
  process.exit(passed ? 0 : 1)
} catch (thrown) {
  console.error(`conformance could not run: ${errorText(thrown)}\nlogs: ${folder}`)
  process.exit(1)
}
