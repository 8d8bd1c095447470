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
  if (!told.has(program)) console.log(`pending, no ${program} in PATH: ${install}`)
  told.add(program)
  context.skip()
}
