// Keeps stdout for the output of a command: what a config, a tool or a package prints in this process goes to stderr.
import { Console } from 'node:console'
import type { CommandContext } from './context.ts'

/**
 * From now on only `context.stdout` is the real stdout. Programs that are started with `stdio: 'inherit'` still have it. A
 * stdout that is not the process's own is not shared.
 */
export function keepStdout({ stdout }: Pick<CommandContext, 'stdout'>): void {
  if (stdout !== process.stdout) return
  const { stderr } = process
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => stderr })
  // Modules that have imported `console` hold this object.
  Object.assign(console, new Console({ stdout: stderr, stderr }))
}
