// Reads and writes the results of a run as a JSON file, for comparisons between runs and for the chart.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { RowResult } from './measure-row.ts'
import { HAS_PROC } from './process-stats.ts'
import { CAN_PIN_CPUS } from './processes.ts'
import type { NamedResult } from './report.ts'

/** Identifies the machine, because results of different machines are not comparable. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  /** Bytes. */
  readonly memory: number
  readonly node: string
  readonly platform: string
}

export interface Results {
  /** ISO 8601. */
  readonly date: string
  /** Undefined outside of a clone. Ends with `-dirty` if there are uncommitted changes. */
  readonly commit: string | undefined
  readonly machine: Machine
  readonly method: { readonly pinned: boolean; readonly cpuTime: boolean }
  readonly quick: boolean
  readonly seconds: number
  readonly rounds: number
  readonly rows: readonly RowResult[]
  readonly measures: readonly NamedResult[]
}

function readCommit(): string | undefined {
  try {
    const cwd = fileURLToPath(new URL('.', import.meta.url))
    const git = (...args: string[]) => execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe' }).trim()
    return `${git('rev-parse', 'HEAD')}${git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '-dirty'}`
  } catch {
    return undefined
  }
}

type Run = Pick<Results, 'quick' | 'seconds' | 'rounds' | 'rows' | 'measures'>

export const describeRun = (run: Run): Results => ({
  date: new Date().toISOString(),
  commit: readCommit(),
  machine: {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memory: totalmem(),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
  },
  method: { pinned: CAN_PIN_CPUS, cpuTime: HAS_PROC },
  ...run,
})

/** Writes bench/results/<date>.json and returns its path. */
export function writeResults(results: Results): string {
  const folder = new URL('results/', import.meta.url)
  const file = fileURLToPath(new URL(`${results.date.slice(0, 19).replaceAll(':', '-')}.json`, folder))
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`)
  return file
}

/** Reads the results file of an earlier run. */
export function readResults(file: string): Results {
  const results = JSON.parse(readFileSync(file, 'utf8')) as Results
  if (!Array.isArray(results?.rows) || results.machine === undefined) {
    throw new Error(`${file} is not a results file: use a file of bench/results/`)
  }
  return results
}
