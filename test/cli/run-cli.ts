// Runs the CLI as a process in a folder with a config. Its code is a bundle, which starts faster;
// test/slow/package.slow.ts runs the package itself.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { bundledFile } from '../support/compiled.ts'
import { type ConfigParts, configWith, type Ended, follow, plainEnvironment, type Running } from './running-command.ts'

export { type ConfigParts, type Ended, ROOT } from './running-command.ts'

/** For configs in folders outside of this repository, where `mcp-host` is no package that can be found: the CLI's own. */
export const CORE = pathToFileURL(bundledFile('core/index.ts')).href
/** The same for internal functions of authentication plugins. */
export const AUTH = pathToFileURL(bundledFile('core/auth.ts')).href

export interface RunningProcess extends Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
}
export type { RunningProcess as Running }

const running = new Set<ChildProcessByStdio<Writable, Readable, Readable>>()

/** The command line of `mcp-host ...args`. */
export const cliCommand = (args: readonly string[]): string[] => [process.execPath, bundledFile('cli/bin.ts'), ...args]

/** Runs `mcp-host ...args` in `cwd`; `env` is put over this process's own. */
export function startCli(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): RunningProcess {
  return startProgram(cliCommand(args), cwd, env)
}

/** Runs any program in the same way. */
export function startProgram([file = '', ...argv]: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
  const child = spawn(file, argv, { cwd, env: { ...plainEnvironment(), ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  const closed = once(child, 'close').then(([code, signal]): Ended['code'] => {
    running.delete(child)
    return code ?? signal
  })
  return { child, ...follow(child, closed) } satisfies RunningProcess
}

/** Runs `mcp-host ...args` in `cwd` to its end. */
export const runCli = (args: readonly string[], cwd: string, env?: NodeJS.ProcessEnv): Promise<Ended> =>
  startCli(args, cwd, env).ended

/** Ends what a failed test left running: for `after`. */
export async function stopAll(): Promise<void> {
  const ends = [...running].map(child => once(child, 'close'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(ends)
}

/** The text of an `mcp.config.mjs`; each part is JavaScript. */
export const configText = (parts: ConfigParts = {}): string => configWith(CORE, parts)
