// `npm run bench`: measures every row of rows/ against the peers, takes every measure of measures/, and says which targets
// are met. Exits 1 when one is clearly missed. Options: see options.ts.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { watchOthers } from './busy.ts'
import { writeChart } from './chart.ts'
import { allowFor, exitCodeOf } from './judge.ts'
import type { Measure } from './measure.ts'
import { measureRow, type RowResult } from './measure-row.ts'
import { type BenchOptions, isChosen, readOptions } from './options.ts'
import { describeMethod, formatMeasure, formatRows, formatTargets, type NamedResult } from './report.ts'
import { describeRun, readResults, writeResults } from './results.ts'
import type { Row } from './row.ts'

async function loadFolder<Module>(name: string): Promise<Module[]> {
  const folder = new URL(`${name}/`, import.meta.url)
  const files = readdirSync(folder).sort()
  return Promise.all(files.map(file => import(new URL(file, folder).href) as Promise<Module>))
}

async function loadRows({ only, quick }: BenchOptions): Promise<Row[]> {
  const rows = (await loadFolder<{ row: Row }>('rows')).map(({ row }) => ({
    ...row,
    contestants: row.contestants.filter(
      ({ name }) => (!quick || row.quick?.includes(name)) && isChosen(only, `${row.name} ${name}`),
    ),
  }))
  return rows.filter(({ contestants }) => contestants.length > 0)
}

async function loadMeasures({ only, quick }: BenchOptions): Promise<Measure[]> {
  const measures = (await loadFolder<{ measure: Measure }>('measures')).map(({ measure }) => measure)
  return measures.filter(measure => (!quick || measure.quick) && isChosen(only, measure.name))
}

/** Runs each, and goes on after one that fails: a long run is not lost with it. */
async function runEach<Item extends { readonly name: string }, Result>(
  items: readonly Item[],
  signal: AbortSignal,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (const item of items) {
    try {
      results.push(await work(item))
    } catch (error) {
      if (signal.aborted) throw error
      console.error(`bench: ${item.name}: ${error instanceof Error ? error.message : error}`)
      process.exitCode = 1
    }
  }
  return results
}

/** When a file was last written; 0 where it is not. */
const writtenAt = (path: string) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Installs the peers where that was not done since their versions changed, and compiles our package. */
function prepare(): void {
  const npm = (folder: string, ...args: string[]) =>
    execFileSync('npm', args, { cwd: fileURLToPath(new URL(folder, import.meta.url)), stdio: 'inherit' })
  // npm writes the second one when it has installed what the first one says.
  if (writtenAt('package-lock.json') > writtenAt('node_modules/.package-lock.json')) npm('.', 'ci', '--silent')
  npm('..', 'run', '--silent', 'build')
}

async function measureAll(options: BenchOptions, scratch: string, signal: AbortSignal) {
  const [chosenRows, chosenMeasures] = [await loadRows(options), await loadMeasures(options)]
  if (chosenRows.length + chosenMeasures.length === 0) {
    throw new Error(
      `nothing has ${options.only.join(' or ')} in its name${options.quick ? ' and runs with --quick' : ''}`,
    )
  }
  prepare()
  console.log(`${describeMethod(options.seconds, options.rounds)}\n`)
  const rows: RowResult[] = await runEach(chosenRows, signal, async row => {
    const readOthers = watchOthers()
    const result = await measureRow(row, { ...options, scratch, signal })
    const others = readOthers()
    const targets = result.targets.map(target => allowFor(others, { ...target, needsQuiet: options.quick }))
    return { ...result, targets, others }
  })
  if (rows.length > 0) console.log(`${formatRows(rows)}\n`)
  const measures: NamedResult[] = await runEach(chosenMeasures, signal, async measure => {
    const readOthers = watchOthers()
    const found = await measure.run({ ...options, scratch, signal })
    const others = readOthers()
    const targets = found.targets.map(target => allowFor(others, target))
    const result = { ...found, name: measure.name, targets, others }
    console.log(`${formatMeasure(result)}\n`)
    return result
  })
  return { rows, measures }
}

async function run(signal: AbortSignal): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options.from !== undefined) {
    console.log(`The chart is in ${writeChart(readResults(options.from))}`)
    return
  }
  const began = performance.now()
  const scratch = mkdtempSync(join(tmpdir(), 'mcp-host-bench-'))
  try {
    const { rows, measures } = await measureAll(options, scratch, signal)
    const { quick, seconds, rounds } = options
    const results = describeRun({ quick, seconds, rounds, rows, measures })
    console.log(`${formatTargets(rows, measures)}\n\nEvery round is in ${writeResults(results)}`)
    console.log(`It took ${Math.round((performance.now() - began) / 1000)} s.`)
    if (options.chart) console.log(`The chart is in ${writeChart(results)}`)
    if (exitCodeOf([...rows, ...measures].flatMap(({ targets }) => targets)) === 1) {
      console.log('\nA target is missed in every round (MISSED above).')
      process.exitCode = 1
    }
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
