// Skips tests whose program is not installed, and prints the command that installs it.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Context } from 'mocha'

export const inPath = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some(folder => existsSync(join(folder, program)))

const told = new Set<string>()

/** For `before` hooks and tests. Fails instead if CI is set, because CI must run all tests. */
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

/** Skips tests for a reason that no installation fixes, such as missing permissions, also in CI. Prints the reason once. */
export function pending(context: Context, why: string): void {
  if (!told.has(why)) console.log(`pending, ${why}`)
  told.add(why)
  context.skip()
}
