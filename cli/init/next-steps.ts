// What `init` prints at its end: what was made, and commands that work as printed, one after the other.
import { relative } from 'node:path'
import { printable } from '../../client/printable.ts'
import { shellWord } from '../shell-word.ts'
import { columns } from '../usage.ts'
import type { Choices } from './choices.ts'
import type { PackageCommands } from './package-commands.ts'

const ADDRESS = 'http://127.0.0.1:3000/mcp'

const ABOUT: Readonly<Record<string, string>> = {
  'mcp.config.ts': 'what is served, and to whom',
  'mcp.config.yaml': 'what is served, and to whom',
  'tools/days_between.ts': 'a tool that needs only its arguments',
  'tools/server_status.ts': 'a tool that uses its context: who calls, from where',
  'test/tools.test.ts': 'the tools by themselves',
  'test/server.test.ts': 'the server, as a client sees it',
  '.env.example': 'secrets and settings of one machine',
  'src/index.ts': 'the plugin: its options and what it does',
  'test/index.test.ts': 'the plugin in a real host',
}

export interface Made {
  readonly cwd: string
  /** Absolute. */
  readonly folder: string
  readonly choices: Choices
  readonly paths: Iterable<string>
  readonly manager: PackageCommands
  readonly installed: boolean
}

const lines = (commands: readonly string[]) => commands.map(command => `  ${command}`).join('\n')

function callLines({ isProtected }: Choices, { execute }: PackageCommands): string[] {
  const login = isProtected ? [`${execute} mcp-host login ${ADDRESS}`] : []
  return [...login, `${execute} mcp-host call ${ADDRESS} days_between from=2026-01-01 to=2026-12-24`]
}

export function nextSteps({ cwd, folder, choices, paths, manager, installed }: Made): string {
  const { name, isPlugin } = choices
  const away = relative(cwd, folder)
  const enter = away === '' ? [] : [`cd ${shellWord(away)}`]
  const install = installed ? [] : [manager.install]
  const files = columns([...paths].map(path => [path, ABOUT[path] ?? ''] as const))
  const begin = [...enter, ...install, manager.test]
  const told = [`Made ${name} in ${printable(away === '' ? folder : away)}:`, files, 'Next:']
  if (isPlugin) return [...told, lines([...begin, `${manager.run} build`, 'npm publish'])].join('\n\n')
  const call = 'In another terminal, in the same folder:'
  return [...told, lines([...begin, `${manager.run} dev`]), call, lines(callLines(choices, manager))].join('\n\n')
}
