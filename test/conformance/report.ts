// Reads the results of the suite (a folder per scenario with checks.json), and prints the verdict and the table.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** One check of a scenario, as the suite writes it. */
export interface Check {
  id: string
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  description?: string
  errorMessage?: string
}

/** What became of one scenario; undefined checks: it did not run, or broke off before it had any result. */
export interface ScenarioResult {
  readonly scenario: string
  readonly checks: readonly Check[] | undefined
}

const STATUSES = ['SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED', 'INFO']
/** The end of a result folder's name: when the scenario ran. */
const TIMESTAMP = /-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/

function parseChecks(file: string): Check[] {
  const checks: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const isCheck = (check: unknown) => STATUSES.includes((check as Partial<Check> | null)?.status ?? '')
  if (!Array.isArray(checks) || !checks.every(isCheck)) throw new Error(`${file} is not a list of checks`)
  return checks as Check[]
}

/**
 * The checks by scenario under a folder of results. A leg's folders carry a prefix, but for those of a client
 * leg, whose scenarios may contain slashes, which become nested folders.
 */
export function readResults(folder: string, prefix: 'server-' | 'authorization-server-' | ''): Map<string, Check[]> {
  const results = new Map<string, Check[]>()
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (basename(path) !== 'checks.json') continue
    const name = dirname(path)
    if (!TIMESTAMP.test(name) || !name.startsWith(prefix)) throw new Error(`${join(folder, path)} names no scenario`)
    results.set(name.slice(prefix.length).replace(TIMESTAMP, ''), parseChecks(join(folder, path)))
  }
  return results
}

const count = (checks: readonly Check[] | undefined, status: Check['status']) =>
  checks?.filter(check => check.status === status).length ?? 0

/** A scenario passed when it ran, something succeeded, and nothing failed or warned. */
export const hasPassed = ({ checks }: ScenarioResult): boolean =>
  count(checks, 'SUCCESS') > 0 && count(checks, 'FAILURE') === 0 && count(checks, 'WARNING') === 0

/** One line for each check that failed, warned or was skipped, or for a scenario that shows nothing. */
function remarks({ checks }: ScenarioResult): string[] {
  if (checks === undefined) return ['did not run']
  const silent = count(checks, 'SUCCESS') === 0 ? ['no check succeeded'] : []
  const notable = checks.filter(({ status }) => ['FAILURE', 'WARNING', 'SKIPPED'].includes(status))
  return [
    ...silent,
    ...notable.map(
      ({ id, status, description, errorMessage }) => `${status} ${id}: ${errorMessage ?? description ?? ''}`,
    ),
  ]
}

/** The table of scenarios; under each, what did not succeed. A skipped check counts neither for nor against. */
export function formatTable(results: readonly ScenarioResult[]): string {
  const width = Math.max(...results.map(({ scenario }) => scenario.length), 8)
  const row = (...[scenario = '', ...cells]: string[]) =>
    `${scenario.padEnd(width)}  ${cells.map(cell => cell.padStart(8)).join('')}`
  const lines = results.flatMap(result => {
    const { scenario, checks } = result
    const counts = (['SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED'] as const).map(status => String(count(checks, status)))
    return [
      `${row(scenario, ...counts)}  ${hasPassed(result) ? 'ok' : 'FAILED'}`,
      ...remarks(result).map(line => `    ${line.replaceAll('\n', '\n      ')}`),
    ]
  })
  return [row('scenario', 'passed', 'failed', 'warned', 'skipped'), ...lines].join('\n')
}
