// `npm run bench`: measures every row of rows/ against the peers and says which targets of the design are met.
// Options: --seconds 3, --rounds 3, --sessions 100000 (0: none), and --only <text>, as often as wanted: rows or servers whose name holds it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { measureIdleSessions } from './idle-sessions.ts'
import { measureRow, type RowResult } from './measure-row.ts'
import { measureRedisCost } from './redis-cost.ts'
import { describeMethod, formatResults, writeResults } from './report.ts'
import type { Row } from './row.ts'

function readOptions() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      sessions: { type: 'string', default: '100000' },
      only: { type: 'string', multiple: true, default: [] },
    },
  })
  const [seconds, rounds, sessions] = [Number(values.seconds), Number(values.rounds), Number(values.sessions)]
  for (const [name, value] of Object.entries({ seconds, rounds })) {
    if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number from 1`)
  }
  return { seconds, rounds, sessions, only: values.only }
}

async function loadRows(only: readonly string[]): Promise<Row[]> {
  const folder = new URL('rows/', import.meta.url)
  const modules = readdirSync(folder)
    .sort()
    .map(file => import(new URL(file, folder).href) as Promise<{ row: Row }>)
  const rows = (await Promise.all(modules)).map(({ row }) => ({
    ...row,
    contestants: row.contestants.filter(
      ({ name }) => only.length === 0 || only.some(text => `${row.name} ${name}`.includes(text)),
    ),
  }))
  const chosen = rows.filter(({ contestants }) => contestants.length > 0)
  if (chosen.length === 0) throw new Error(`no row or server matches --only ${only.join(' ')}`)
  return chosen
}

async function run(signal: AbortSignal): Promise<void> {
  const { seconds, rounds, sessions, only } = readOptions()
  const rows = await loadRows(only)
  if (rows.some(({ contestants }) => contestants.some(({ ours }) => ours))) {
    execFileSync('npm', ['run', 'build'], { cwd: fileURLToPath(new URL('..', import.meta.url)), stdio: 'inherit' })
  }
  console.log(`${describeMethod(seconds, rounds)}\n`)
  const scratch = mkdtempSync(join(tmpdir(), 'mcp-host-bench-'))
  try {
    const results: RowResult[] = []
    for (const row of rows) results.push(await measureRow(row, { seconds, rounds, scratch, signal }))
    console.log(formatResults(results))
    if (sessions >= 10_000 && only.length === 0) {
      console.log(`\n${await measureIdleSessions(sessions, scratch, signal)}`)
    }
    if (only.length === 0 || only.some(text => 'shared session'.includes(text))) {
      console.log(`\n${await measureRedisCost(scratch, signal)}`)
    }
    console.log(`\nEvery round is in ${writeResults(results, seconds, rounds)}`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

const stopped = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopped.abort())

try {
  await run(stopped.signal)
} catch (error) {
  console.error(stopped.signal.aborted ? 'bench: stopped' : `bench: ${error instanceof Error ? error.message : error}`)
  process.exitCode = stopped.signal.aborted ? 130 : 1
}
