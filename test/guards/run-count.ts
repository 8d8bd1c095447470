// Runs a counting program (count-*.ts), compiled, in a separate process.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { compiledFile } from '../support/compiled.ts'

type Program = 'count-bytes' | 'count-collections' | 'count-objects' | 'count-store-bytes'

/** Returns the object that the program prints: most programs print one value for each kind of work. */
export async function countIn<T>(program: Program, flags: readonly string[] = []): Promise<T> {
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, compiledFile(`test/guards/${program}.ts`)])
  return JSON.parse(stdout) as T
}

/** The first number of this Node's version. */
export const NODE = Number.parseInt(process.versions.node, 10)
