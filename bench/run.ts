// `npm run bench`: runs the comparisons in rows/ and the measurements in measures/, and prints which targets are met.
// Exits with 1 if a target is missed in every round. Options: see options.ts.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeChart } from './chart.ts'
import type { Measure } from './measure.ts'
import { measureRow, type RowResult } from './measure-row.ts'
import { type BenchOptions, isSelected, readOptions } from './options.ts'
import { trackOtherLoad } from './other-load.ts'
import { describeMethod, formatMeasure, formatRows, formatTargets, type NamedResult } from './report.ts'
import { describeRun, readResults, writeResults } from './results.ts'
import type { Row } from './row.ts'
import { adjustForOtherLoad, computeExitCode } from './targets.ts'

async function loadFolder<Module>(name: string): Promise<Module[]> {
  const folder = new URL(`${name}/`, import.meta.url)
  const files = readdirSync(folder).sort()
  return Promise.all(files.map(file => import(new URL(file, folder).href) as Promise<Module>))
}

async function loadRows({ only, quick }: BenchOptions): Promise<Row[]> {
  const rows = (await loadFolder<{ row: Row }>('rows')).map(({ row }) => ({
    ...row,
    contestants: row.contestants.filter(
      ({ name }) => (!quick || row.quick?.includes(name)) && isSelected(only, `${row.name} ${name}`),
    ),
  }))
  return rows.filter(({ contestants }) => contestants.length > 0)
}

async function loadMeasures({ only, quick }: BenchOptions): Promise<Measure[]> {
  const measures = (await loadFolder<{ measure: Measure }>('measures')).map(({ measure }) => measure)
  return measures.filter(measure => (!quick || measure.quick) && isSelected(only, measure.name))
}

/** Continues after an error, so that one failed row does not discard the results of a long run. */
async function runEach<Item extends { readonly name: string }, Result>(
  items: readonly Item[],
  signal: AbortSignal,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (const item of items) {
    try {
      results.push(await run(item))
    } catch (error) {
      if (signal.aborted) throw error
      console.error(`bench: ${item.name}: ${error instanceof Error ? error.message : error}`)
      process.exitCode = 1
    }
  }
  return results
}

/** 0 if the file does not exist. */
const readModifiedTime = (path: string) =>
  statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Installs the other servers if their versions changed, and compiles mcp-host. */
function installAndBuild(): void {
  const npm = (folder: string, ...args: string[]) =>
    execFileSync('npm', args, { cwd: fileURLToPath(new URL(folder, import.meta.url)), stdio: 'inherit' })
  // npm writes the second file after each installation.
  if (readModifiedTime('package-lock.json') > readModifiedTime('node_modules/.package-lock.json'))
    npm('.', 'ci', '--silent')
  npm('..', 'run', '--silent', 'build')
}

async function measureAll(options: BenchOptions, scratch: string, signal: AbortSignal) {
  const [selectedRows, selectedMeasures] = [await loadRows(options), await loadMeasures(options)]
  if (selectedRows.length + selectedMeasures.length === 0) {
    throw new Error(`no benchmark ${options.quick ? 'of --quick ' : ''}matches --only ${options.only.join(' or ')}`)
  }
  installAndBuild()
  console.log(`${describeMethod(options.seconds, options.rounds)}\n`)
  const rows: RowResult[] = await runEach(selectedRows, signal, async row => {
    const readOtherLoad = trackOtherLoad()
    const result = await measureRow(row, { ...options, scratch, signal })
    const others = readOtherLoad()
    const targets = result.targets.map(target => adjustForOtherLoad(others, { ...target, needsQuiet: options.quick }))
    return { ...result, targets, others }
  })
  if (rows.length > 0) console.log(`${formatRows(rows)}\n`)
  const measures: NamedResult[] = await runEach(selectedMeasures, signal, async measure => {
    const readOtherLoad = trackOtherLoad()
    const measured = await measure.run({ ...options, scratch, signal })
    const others = readOtherLoad()
    const targets = measured.targets.map(target => adjustForOtherLoad(others, target))
    const result = { ...measured, name: measure.name, targets, others }
    console.log(`${formatMeasure(result)}\n`)
    return result
  })
  return { rows, measures }
}

async function run(signal: AbortSignal): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options.from !== undefined) {
    console.log(`Chart: ${writeChart(readResults(options.from))}`)
    return
  }
  const startedAt = performance.now()
  const scratch = mkdtempSync(join(tmpdir(), 'mcp-host-bench-'))
  try {
    const { rows, measures } = await measureAll(options, scratch, signal)
    const { quick, seconds, rounds } = options
    const results = describeRun({ quick, seconds, rounds, rows, measures })
    console.log(`${formatTargets(rows, measures)}\n\nResults: ${writeResults(results)}`)
    console.log(`Duration: ${Math.round((performance.now() - startedAt) / 1000)} s`)
    if (options.chart) console.log(`Chart: ${writeChart(results)}`)
    if (computeExitCode([...rows, ...measures].flatMap(({ targets }) => targets)) === 1) {
      console.log('\nAt least one target was missed in every round (see MISSED above).')
      process.exitCode = 1
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => interrupted.abort())

try {
  await run(interrupted.signal)
} catch (error) {
  console.error(
    interrupted.signal.aborted ? 'bench: interrupted' : `bench: ${error instanceof Error ? error.message : error}`,
  )
  process.exitCode = interrupted.signal.aborted ? 130 : 1
}
