// Declares commands and parses their options from `argv`, and prints their help.
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { LoadedConfig } from '../core/config/load-config.ts'
import type { StartError } from '../core/http/errors.ts'
import { nearest } from '../core/mcp/nearest.ts'
import { isObject } from '../core/mcp/wire/message.ts'
import { type CommandContext, usage } from './context.ts'
import { formatColumns, wrapLines } from './render.ts'
import { nearestHint } from './text.ts'
import { ownPackage } from './version.ts'

/** An option with neither `value` (shown in help) nor `choices` is a flag. */
interface CommandOption {
  readonly short?: string
  readonly multiple?: boolean
  readonly value?: string
  readonly choices?: readonly string[]
  readonly help: string
}

export type CommandOptionTable = Readonly<Record<string, CommandOption>>

type ValueOf<Option extends CommandOption> = Option extends { readonly multiple: true }
  ? readonly string[]
  : Option extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : Option extends { readonly value: string }
      ? string
      : boolean

export type CommandValues<Table extends CommandOptionTable> = {
  readonly [Name in keyof Table]?: ValueOf<Table[Name]>
} & { readonly verbose?: boolean }

interface CommandDeclaration<Table extends CommandOptionTable> {
  readonly summary: string
  /** `URL` is required, `[URL]` is optional, `[X...]` takes the rest. */
  readonly positionals?: readonly string[]
  readonly options: Table
  readonly instead?: Readonly<Record<string, string>>
  readonly notes?: string
  /** Arguments of a typical call, without `mcp-host` and the command name. */
  readonly example: string
  /** Returns the exit code; undefined means 0. */
  run(values: CommandValues<Table>, positionals: readonly string[], context: CommandContext): Result
}

type Result = Promise<number | undefined> | Promise<void>

export type Command = Omit<CommandDeclaration<CommandOptionTable>, 'run'> & {
  run(values: Readonly<Record<string, unknown>>, positionals: readonly string[], context: CommandContext): Result
}

export const defineCommand = <const Table extends CommandOptionTable>(
  declaration: CommandDeclaration<Table>,
): Command => declaration as unknown as Command

export const COMMON_OPTIONS: CommandOptionTable = {
  verbose: { help: 'Log debug messages, print error stacks' },
  help: { short: 'h', help: 'Print this help' },
}

export const ENV_FILE_OPTION = {
  'env-file': {
    value: '<file>',
    multiple: true,
    help: 'File with NAME=value lines; variables that are set take precedence; repeatable, the last file wins',
  },
} as const satisfies CommandOptionTable

export const CONFIG_OPTION = {
  config: {
    short: 'c',
    value: '<file>',
    help: 'Config file [mcp.config.{ts,js,json,yaml,...} here or in a parent folder]',
  },
} as const satisfies CommandOptionTable

export const LOG_OPTIONS = {
  'log-format': { choices: ['json', 'pretty'], help: 'Log format [pretty with pino-pretty in a terminal, else json]' },
  'log-level': { choices: ['debug', 'info', 'warn', 'error', 'fatal'], help: 'Lowest logged level [info]' },
} as const satisfies CommandOptionTable

export type LogValues = CommandValues<typeof LOG_OPTIONS>

export const LISTEN_OPTIONS = {
  host: { value: '<host>', help: 'Host to listen on [http.host of the config]' },
  port: { value: '<port>', help: 'Port to listen on; 0 selects a free port [http.port of the config]' },
} as const satisfies CommandOptionTable

/** Replaces `http.host` and `http.port` of a config. Throws a StartError (exit code 2) for an invalid port. */
export function listenOn({ host, port }: CommandValues<typeof LISTEN_OPTIONS>): (loaded: LoadedConfig) => LoadedConfig {
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= 65_535)) {
    throw usage('--port must be a number from 0 to 65535')
  }
  const settings = { ...(host !== undefined && { host }), ...(port !== undefined && { port: Number(port) }) }
  return loaded => {
    const { config } = loaded
    if (!isObject(config) || Object.keys(settings).length === 0) return loaded
    const { http = {} } = config
    // The check of the config reports an invalid `http`.
    return isObject(http) ? { ...loaded, config: { ...config, http: { ...http, ...settings } } } : loaded
  }
}

export const START_OPTIONS = {
  ...CONFIG_OPTION,
  ...LISTEN_OPTIONS,
  ...ENV_FILE_OPTION,
  ...LOG_OPTIONS,
  workers: { value: '<n>', help: 'Number of processes that share the port, or auto for one per core [1]' },
  frozen: { help: 'Serve only what the lock file contains' },
  lock: { value: '<file>', help: 'Lock file of --frozen [mcp.lock.json next to the config]' },
  role: {
    choices: ['worker', 'front', 'both'],
    help: 'Role of this process for tasks: front accepts them, worker runs them [role of plugins.tasks]',
  },
} as const satisfies CommandOptionTable

export type StartOptions = CommandValues<typeof START_OPTIONS>

export function readSeconds(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const seconds = Number(text)
  if (seconds > 0 && seconds <= 86_400) return seconds * 1_000
  throw usage(`--${option} must be a number of seconds, at most 86400`)
}

/** Exceeds the cores of any machine, so the value is a mistake, such as a port. */
const MAX_WORKERS = 1024

export function readWorkers(text: string): number {
  if (text === 'auto') return availableParallelism()
  const count = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0
  if (count > 0 && count <= MAX_WORKERS) return count
  throw usage(`--workers ${text}: give a number from 1 to ${MAX_WORKERS}, or "auto" for one per core`)
}

interface CommandGroup {
  readonly title: string
  readonly commands: ReadonlyArray<readonly [name: string, command: Command]>
}

export function listCommands(groups: readonly CommandGroup[], lineWidth: number): string {
  const width = Math.max(...groups.flatMap(({ commands }) => commands.map(([name]) => name.length)))
  const lines = groups.map(({ title, commands }) => {
    const rows = commands.map(([name, { summary }]) => [name.padEnd(width), summary] as const)
    return `${title}\n${formatColumns(rows, lineWidth)}`
  })
  const more = formatColumns([
    ['-v, --version', 'Print the version'],
    ['-h, --help', 'Print this list, or the help of a command'],
    ['help CODE', 'Explain a code of the log or of an error, for example MH1012'],
  ])
  return ['Usage: mcp-host <command> [options]', ...lines, `Options\n${more}`].join('\n\n')
}

export const valueName = ({ choices, value }: CommandOption) => (choices ? `<${choices.join('|')}>` : value)

const usageLine = (name: string, { positionals = [] }: Command): string =>
  `Usage: ${['mcp-host', name, ...positionals, '[options]'].join(' ')}`

export function describeCommand(name: string, command: Command, width: number): string {
  const rows = Object.entries({ ...command.options, ...COMMON_OPTIONS }).map(([option, about]) => {
    const short = about.short === undefined ? '    ' : `-${about.short}, `
    return [[`${short}--${option}`, valueName(about) ?? []].flat().join(' '), about.help] as const
  })
  const notes = command.notes === undefined ? [] : [wrapLines(command.notes, width)]
  const example = `Example\n  ${['mcp-host', name, command.example].join(' ').trimEnd()}`
  const docs = `Documentation\n  ${join(ownPackage.folder, 'docs/cli.md')}`
  const options = `Options\n${formatColumns(rows, width)}`
  return [usageLine(name, command), wrapLines(command.summary, width), example, options, ...notes, docs].join('\n\n')
}

export const usageError = (what: string, help: string): StartError => usage(`${what}\n\n${help}`)

/** Parses options and arguments. Throws a StartError (exit code 2) that never quotes a value, which can be a secret. */
export function readArguments(name: string, command: Command, argv: readonly string[]) {
  const known: CommandOptionTable = { ...command.options, ...COMMON_OPTIONS }
  const fail = (what: string) =>
    usageError(what, `${usageLine(name, command)}\nmcp-host ${name} --help lists the options.`)
  const options = Object.fromEntries(
    Object.entries(known).map(([option, about]) => {
      const type = valueName(about) === undefined ? ('boolean' as const) : ('string' as const)
      return [option, { type, ...(about.short !== undefined && { short: about.short }) }]
    }),
  )
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true })
  const values: Record<string, unknown> = {}
  const given: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') given.push(token.value)
    if (token.kind !== 'option') continue
    const { value, inlineValue, rawName } = token
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined
    if (!option) throw fail(unknownOption(name, command, rawName, Object.keys(known)))
    const { multiple, choices } = option
    const expected = valueName(option)
    if (expected === undefined && value !== undefined) throw fail(`option '${rawName}' takes no value`)
    // Values can begin with a dash, such as task ids.
    if (expected !== undefined && (value === undefined || (!inlineValue && isOption(value, known))))
      throw fail(`option '${rawName} ${expected}' requires a value`)
    if (choices && !choices.includes(String(value)))
      throw fail(
        `${rawName} is ${JSON.stringify(value)}; give one of ${choices.join(', ')}${nearestHint(String(value), choices)}`,
      )
    const before = values[token.name]
    values[token.name] = multiple ? [...(Array.isArray(before) ? before : []), value] : (value ?? true)
  }
  if (values['help'] !== true) checkCount(command, given, fail)
  return { values, positionals: given }
}

function isOption(text: string, known: CommandOptionTable): boolean {
  const [name = ''] = text.replace(/^--?/, '').split('=')
  return /^-./.test(text) && (Object.hasOwn(known, name) || Object.values(known).some(({ short }) => short === name))
}

function checkCount({ positionals = [] }: Command, given: readonly string[], fail: (what: string) => StartError): void {
  const missing = positionals.filter(positional => !positional.startsWith('['))[given.length]
  if (missing !== undefined) throw fail(`${missing} is missing`)
  const extra = given[positionals.length]
  if (extra !== undefined && !positionals.at(-1)?.includes('...')) throw fail(`unexpected "${extra}"`)
}

function unknownOption(name: string, { instead = {} }: Command, rawName: string, known: readonly string[]): string {
  const plain = rawName.replace(/^-+/, '')
  const unknown = `unknown option '${rawName}' of ${name}`
  if (Object.hasOwn(instead, plain)) return `${unknown}: ${instead[plain]}`
  const closest = nearest(plain, known)
  return closest === undefined ? unknown : `${unknown}; did you mean '--${closest}'?`
}
