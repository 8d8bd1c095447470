// `mcp-host init`: creates a server or, with --plugin, a plugin package. Also used by `npm create mcp-host`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename, relative, resolve } from 'node:path'
import { printable, defined as withoutUndefined } from '../client/text.ts'
import { SEARCHED } from '../core/config/load-config.ts'
import { StartError } from '../core/http/errors.ts'
import { assertInstalled } from '../core/http/optional-packages.ts'
import { type CommandValues, defineCommand } from './command.ts'
import { type CommandContext, usage } from './context.ts'
import { addToPackage, readManifest } from './init/existing-package.ts'
import {
  type Choices,
  DEFAULT_NAME,
  DEFAULT_PLUGIN_NAME,
  defaultStore,
  type Given,
  noteOnNode,
  type PackageCommands,
  packageCommandsOf,
  pluginFiles,
  projectFiles,
  toPackageName,
} from './init/project-files.ts'
import { assertFree, writeNew } from './init/write-new.ts'
import { formatColumns } from './render.ts'
import { shellWord } from './text.ts'

const ADDRESS = 'http://127.0.0.1:3000/mcp'

const ABOUT: Readonly<Record<string, string>> = {
  'mcp.config.ts': 'toolsets, routes and plugins',
  'mcp.config.yaml': 'toolsets, routes and plugins',
  'tools/days_between.ts': 'a tool that needs only its arguments',
  'tools/server_status.ts': 'a tool that uses its context: caller and request',
  'test/tools.test.ts': 'tests of the tools',
  'test/server.test.ts': 'tests of the server with a client',
  '.env.example': 'secrets and settings of one machine',
  'src/index.ts': 'the plugin: options and behaviour',
  'test/index.test.ts': 'tests of the plugin in a host',
}

interface CreatedProject {
  readonly cwd: string
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

function nextSteps({ cwd, folder, choices, paths, manager, installed }: CreatedProject): string {
  const { name, isPlugin } = choices
  const away = relative(cwd, folder)
  const enter = away === '' ? [] : [`cd ${shellWord(away)}`]
  const install = installed ? [] : [manager.install]
  const files = formatColumns([...paths].map(path => [path, ABOUT[path] ?? ''] as const))
  const steps = [...enter, ...install, manager.test]
  const summary = [`Created ${name} in ${printable(away === '' ? folder : away)}:`, files, 'Next:']
  if (isPlugin) return [...summary, lines([...steps, `${manager.run} build`, 'npm publish'])].join('\n\n')
  const call = 'In another terminal, in the same folder:'
  return [...summary, lines([...steps, `${manager.run} dev`]), call, lines(callLines(choices, manager))].join('\n\n')
}

const OPTIONS = {
  name: { value: '<name>', help: 'Name of the package and the server [name of the folder]' },
  format: { choices: ['ts', 'yaml'], help: 'Config format [ts]' },
  protected: { help: 'Require login, with a development authorization server' },
  store: {
    choices: ['file', 'redis', 'memory'],
    help: 'Session storage [file with Node.js 22.13 or later, else memory]',
  },
  plugin: { help: 'Create a plugin package instead of a server' },
  install: { help: 'Run npm install afterwards' },
  yes: { short: 'y', help: 'Use the defaults instead of asking; always without a terminal' },
} as const

function readGiven(options: CommandValues<typeof OPTIONS>, folder: string | undefined): Given {
  const { name, format, store, plugin: isPlugin = false } = options
  if (isPlugin && (format !== undefined || store !== undefined || options.protected))
    throw usage('--format, --protected and --store are for servers: omit them, or --plugin')
  return { isPlugin, ...withoutUndefined({ folder, name, format, store, isProtected: options.protected }) }
}

function fillChoices(given: Given, cwd: string): Choices {
  const { isPlugin = false, folder = '.', format = 'ts', isProtected = false, store = defaultStore() } = given
  return { isPlugin, folder, name: given.name ?? basename(resolve(cwd, folder)), format, isProtected, store }
}

async function readChoices(
  given: Given,
  isInteractive: boolean,
  { cwd }: CommandContext,
): Promise<Choices & { note?: string }> {
  if (isInteractive) assertInstalled(['@clack/prompts'], { what: 'prompts (use npm create mcp-host, or --yes)' })
  const choices = isInteractive
    ? await (await import('./init/ask-choices.ts')).askChoices(given)
    : fillChoices(given, cwd)
  const name = toPackageName(choices.name, choices.isPlugin ? DEFAULT_PLUGIN_NAME : DEFAULT_NAME)
  if (name === choices.name) return choices
  const note = `"${printable(choices.name, MAX_SHOWN)}" is not a valid npm package name; using ${name}.\n`
  return { ...choices, name, note }
}

const TSCONFIG_NOTE =
  'tsconfig.json is kept. For `tsc`, it must have "noEmit" and "allowImportingTsExtensions": true, "module": "preserve" or "nodenext", and "target": "es2022" or later.'

const MAX_SHOWN = 100

async function install(folder: string, command: string, { print }: CommandContext): Promise<void> {
  print(`\n${command} ...`)
  const [program = '', ...args] = command.split(' ')
  // On Windows, npm is a shell script.
  const child = spawn(program, args, { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' })
  const [code] = await once(child, 'close')
  if (code !== 0)
    throw new StartError('MH3311', `the files were created, but ${command} failed; run it in ${printable(folder)}`)
}

export const initCommand = defineCommand({
  summary: 'Create a server project or a plugin package',
  example: 'my-server --protected',
  positionals: ['[FOLDER]'],
  options: OPTIONS,
  notes:
    'In an existing package, init adds to package.json and .gitignore after it shows the change. Other files are never overwritten. In a terminal, init asks for options that are not given.',
  async run(options, [folder], context) {
    const { stdin, stdout, env, cwd, print } = context
    const hasPerson = stdin.isTTY === true && stdout.isTTY === true
    const own = readManifest(resolve(cwd, folder ?? '.'))?.['name']
    const given = readGiven({ ...(typeof own === 'string' && !options.plugin && { name: own }), ...options }, folder)
    const isInteractive = hasPerson && options.yes !== true
    const choices = await readChoices(given, isInteractive, context)
    const at = resolve(cwd, choices.folder)
    const manifest = choices.isPlugin ? undefined : readManifest(at)
    const project = choices.isPlugin ? pluginFiles(choices) : projectFiles(choices)
    const addition = manifest && addToPackage(at, manifest, project)
    const files = addition?.files ?? project
    // With two configs in a folder, one would be ignored.
    const taken = choices.isPlugin ? files.keys() : [...files.keys(), ...SEARCHED]
    const extend = choices.isPlugin ? '' : '. To extend this project: mcp-host add tool NAME'
    assertFree(at, taken, `For a new project, name another folder: mcp-host init FOLDER${extend}`)
    if (addition) {
      print(`Changes to the package in ${printable(at)}:\n${addition.shown}\n`)
      if (isInteractive && !(await (await import('./init/ask-choices.ts')).confirmChange())) return
      for (const file of await addition.write()) print(`Backup of the previous version: ${printable(file)}`)
      if (addition.keepsTsconfig) print(TSCONFIG_NOTE)
    } else writeNew(at, files)
    if (choices.note !== undefined) print(choices.note)
    const onNode = choices.isPlugin ? undefined : noteOnNode(choices.store, isInteractive || given.store !== undefined)
    if (onNode !== undefined) print(onNode)
    const standard = packageCommandsOf(env['npm_config_user_agent'])
    // The scripts of a package can have other names.
    const test = addition?.hasExistingTest ? `${standard.run} mcp:test` : standard.test
    const manager = addition ? { ...standard, test, run: `${standard.execute} mcp-host` } : standard
    const installed = options.install === true
    if (installed) await install(at, manager.install, context)
    print(nextSteps({ cwd, folder: at, choices, paths: files.keys(), manager, installed }))
  },
})
