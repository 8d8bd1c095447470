// Keeps stdout for the protocol: whatever else is printed in this process, by a tool or a package of its, goes to stderr.
import { Console } from 'node:console'
import type { Writable } from 'node:stream'

/** The real stdout. From now on nobody else has it, but for programs that are started with `stdio: 'inherit'`. */
export function keepStdout(): Writable {
  const { stdout, stderr } = process
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => stderr })
  // Who asked for `console` before has this very object.
  Object.assign(console, new Console({ stdout: stderr, stderr }))
  return stdout
}
