// How whoever started this process starts it again: for commands that are printed to be pasted.
import { relative } from 'node:path'
import type { CommandContext } from './context.ts'
import { shellWord } from './shell-word.ts'

export type Starter = Pick<CommandContext, 'script' | 'env' | 'cwd'>

/** `mcp-host`, in the words that work in this terminal and folder. */
export function selfCommand({ script, env, cwd }: Starter, program = process.execPath): string {
  // npm puts the programs of the project into PATH for its own children alone.
  if (env['npm_execpath'] !== undefined || env['npm_command'] !== undefined) return 'npx mcp-host'
  if (/[\\/]mcp-host$/.test(script)) return 'mcp-host'
  const short = relative(cwd, script)
  const file = shellWord(short.startsWith('..') ? script : short)
  return script.endsWith('.ts')
    ? `npx tsx ${file}`
    : `${/[\\/]node$/.test(program) ? 'node' : shellWord(program)} ${file}`
}
