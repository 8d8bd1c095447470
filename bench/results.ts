// The results of a run as one JSON file with every round: for whoever compares runs, and for the chart.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { RowResult } from './measure-row.ts'
import { CAN_READ_COST } from './process-cost.ts'
import { CAN_PIN } from './processes.ts'
import type { NamedResult } from './report.ts'

/** Figures of two machines are not comparable: what there is to tell them apart. */
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
  /** Of this repository; undefined outside of a clone. `-dirty` at its end: with changes that are in no commit. */
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

type Found = Pick<Results, 'quick' | 'seconds' | 'rounds' | 'rows' | 'measures'>

export const describeRun = (found: Found): Results => ({
  date: new Date().toISOString(),
  commit: readCommit(),
  machine: {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memory: totalmem(),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
  },
  method: { pinned: CAN_PIN, cpuTime: CAN_READ_COST },
  ...found,
})

/** Writes bench/results/<date>.json and returns its path. */
export function writeResults(results: Results): string {
  const folder = new URL('results/', import.meta.url)
  const file = fileURLToPath(new URL(`${results.date.slice(0, 19).replaceAll(':', '-')}.json`, folder))
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`)
  return file
}

/** Reads what an earlier run wrote. Throws where the file holds something else. */
export function readResults(file: string): Results {
  const results = JSON.parse(readFileSync(file, 'utf8')) as Results
  if (!Array.isArray(results?.rows) || results.machine === undefined) {
    throw new Error(`${file} holds no results: give a file of bench/results/ that this version wrote`)
  }
  return results
}
