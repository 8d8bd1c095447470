// Keeps stdout for the protocol: whatever else is printed in this process, by a tool or a package of its, goes to stderr.
import { Console } from 'node:console'
import type { Writable } from 'node:stream'
import type { CommandContext } from '../context.ts'

/**
 * The real stdout. From now on nobody else has it, but for programs that are started with `stdio: 'inherit'`. A stdout that is
 * not the process's own is not shared.
 */
export function keepStdout({ stdout }: Pick<CommandContext, 'stdout'>): Writable {
  if (stdout !== process.stdout) return stdout
  const { stderr } = process
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => stderr })
  // Who asked for `console` before has this very object.
  Object.assign(console, new Console({ stdout: stderr, stderr }))
  return stdout
}
