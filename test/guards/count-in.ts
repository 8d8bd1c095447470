// Runs a program that counts (count-*.ts), compiled, in a process of its own.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { compiledFile } from '../support/compiled.ts'
import type { Work } from './guarded-host.ts'

type Program = 'count-bytes' | 'count-collections' | 'count-made'

/** What the program counts of each kind of work. */
export async function countIn<T>(program: Program, flags: readonly string[] = []): Promise<Record<Work, T>> {
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, compiledFile(`test/guards/${program}.ts`)])
  return JSON.parse(stdout) as Record<Work, T>
}

/** The first number of this Node's version. */
export const NODE = Number.parseInt(process.versions.node, 10)
