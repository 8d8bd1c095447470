// Runs the CLI at a terminal, by `script` of util-linux. The result contains stdout and stderr as stdout.
import { spawnSync } from 'node:child_process'
import type { Context } from 'mocha'
import { needsProgram } from '../support/needs-program.ts'
import { cliCommand, type Running, startProgram } from './run-cli.ts'

const hasTerminals = () => spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0

export const needsTerminals = (context: Context) =>
  needsProgram(context, 'script (of util-linux)', 'apt-get install bsdutils', hasTerminals)

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

export function startInTerminal(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Running {
  // Without a size, what draws would wrap each character.
  const command = `stty cols 100 rows 40; exec ${cliCommand(args).map(quote).join(' ')}`
  const running = startProgram(['script', '-qec', command, '/dev/null'], cwd, env)
  const listening = async () => (await running.printed(/^ {2}(https?:\/\/[^\s/]+)\S* .*\d tools? /m))[1] ?? ''
  return { ...running, listening }
}
