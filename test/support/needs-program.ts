// Programs of the system that a test starts: where one is missing, its tests are pending, with the line that installs it.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Context } from 'mocha'

export const inPath = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some(folder => existsSync(join(folder, program)))

const told = new Set<string>()

/** For `before` hooks and tests. With CI set, where everything is to be tested, a missing program is a failure. */
export function needsProgram(
  context: Context,
  program: string,
  install: string,
  isThere = (): boolean => inPath(program),
): void {
  if (isThere()) return
  if (process.env['CI']) throw new Error(`no ${program} in PATH: ${install}`)
  pending(context, `no ${program} in PATH: ${install}`)
}

/** Of what nothing that is installed would mend, such as rights that this process lacks, CI's too: pending, and said once why. */
export function pending(context: Context, why: string): void {
  if (!told.has(why)) console.log(`pending, ${why}`)
  told.add(why)
  context.skip()
}
