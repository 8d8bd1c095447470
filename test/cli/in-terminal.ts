// The CLI with a terminal in front of it, by `script` of util-linux; what it prints to either stream comes as stdout.
import { spawnSync } from 'node:child_process'
import { cliCommand, type Running, startProgram } from './run-cli.ts'

/** False where there is no such program. */
export const hasTerminals = (): boolean => spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

export function startInTerminal(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Running {
  return startProgram(['script', '-qec', cliCommand(args).map(quote).join(' '), '/dev/null'], cwd, env)
}
