// What a verb of the CLI is: a module that says what it does, which options it has, and how it runs.

import { parseArgs } from 'node:util'
import { StartError } from '../core/http/errors.ts'
import { nearest } from '../core/mcp/nearest.ts'
import type { CommandContext } from './context.ts'

export interface VerbOption {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** May be given several times; the values come as a list. */
  readonly multiple?: boolean
  /** What the help calls the value, such as `<file>`. */
  readonly value?: string
  readonly help: string
}

export type VerbOptionTable = Readonly<Record<string, VerbOption>>

type ValueOf<Option extends VerbOption> = Option extends { readonly type: 'boolean' }
  ? boolean
  : Option extends { readonly multiple: true }
    ? readonly string[]
    : string

/** The values of options that were given; the others are absent. */
export type VerbValues<Table extends VerbOptionTable> = {
  readonly [Name in keyof Table]?: ValueOf<Table[Name]>
} & { readonly verbose?: boolean }

export type CommandResult = Promise<number | undefined> | Promise<void>

export interface VerbDeclaration<Table extends VerbOptionTable> {
  /** One line, for the list of verbs. */
  readonly summary: string
  /** Names of the arguments as the usage shows them: `URL` is needed, `[URL]` is not, `[X...]` takes all that are left. */
  readonly positionals?: readonly string[]
  readonly options: Table
  /** Names that are no options, and what to do instead: such as a secret, which argv would show to everybody. */
  readonly instead?: Readonly<Record<string, string>>
  /** More help, below the options. */
  readonly notes?: string
  /** Returns the exit code; undefined is 0. */
  run(values: VerbValues<Table>, positionals: readonly string[], context: CommandContext): CommandResult
}

/** A verb whose options were not looked at closely: what main works with. */
export type Verb = Omit<VerbDeclaration<VerbOptionTable>, 'run'> & {
  run(values: Readonly<Record<string, unknown>>, positionals: readonly string[], context: CommandContext): CommandResult
}

/** Gives `run` the types of its options. */
export const defineVerb = <const Table extends VerbOptionTable>(declaration: VerbDeclaration<Table>): Verb =>
  declaration as unknown as Verb

/** Of every verb. */
export const COMMON_OPTIONS = {
  verbose: { type: 'boolean', help: 'debug lines in the log, stacks of errors' },
  help: { type: 'boolean', short: 'h', help: 'this text' },
} as const satisfies VerbOptionTable

/** Of the verbs that serve a config. */
export const ENV_FILE_OPTION = {
  'env-file': {
    type: 'string',
    value: '<file>',
    multiple: true,
    help: 'environment variables, NAME=value a line; what is set already wins; may be repeated, the later wins',
  },
} as const satisfies VerbOptionTable

/** Of the verbs that read a config. */
export const CONFIG_OPTION = {
  config: {
    type: 'string',
    short: 'c',
    value: '<file>',
    help: 'default: mcp.config.{ts,js,json,yaml,...} here or above',
  },
} as const satisfies VerbOptionTable

/** Of the verbs that serve a config, or check it. */
export const LOG_OPTIONS = {
  'log-format': { type: 'string', value: '<format>', help: 'json or pretty; default: pretty at a terminal, else json' },
  'log-level': {
    type: 'string',
    value: '<level>',
    help: 'debug, info, warn, error or fatal: the least that is logged; default: info',
  },
} as const satisfies VerbOptionTable

export type LogValues = VerbValues<typeof LOG_OPTIONS>

/** What `start` gets, in the process that listens and in those that share its port. */
export interface StartOptions extends LogValues, VerbValues<typeof ENV_FILE_OPTION> {
  readonly config?: string
  /** A number of processes, or `auto`; absent: this one alone. */
  readonly workers?: string
  /** Only what the lock says is served. */
  readonly frozen?: boolean
  /** The lock, where it is not beside the config. */
  readonly lock?: string
  /** What it does with tasks; absent: as the config says. */
  readonly role?: string
}

export const GENERAL_USAGE = 'Usage: mcp-host <verb> [options]'

/** Characters: a longer cell does not widen the others. */
const MAX_WIDTH = 100

/** Two columns, the first as wide as its widest cell. */
export function columns(rows: ReadonlyArray<readonly [string, string]>): string {
  const width = rows.reduce((most, [left]) => Math.max(most, Math.min(left.length, MAX_WIDTH)), 0)
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd()).join('\n')
}

export interface VerbGroup {
  readonly title: string
  readonly verbs: ReadonlyArray<readonly [name: string, verb: Verb]>
}

export function listVerbs(groups: readonly VerbGroup[]): string {
  const width = Math.max(...groups.flatMap(({ verbs }) => verbs.map(([name]) => name.length)))
  const lines = groups.map(({ title, verbs }) => {
    const rows = verbs.map(([name, { summary }]) => [name.padEnd(width), summary] as const)
    return `${title}\n${columns(rows)}`
  })
  const more = columns([
    ['-v, --version', ''],
    ['-h, --help', 'this list; after a verb: its options'],
  ])
  return [GENERAL_USAGE, ...lines, `Options\n${more}`].join('\n\n')
}

const left = (name: string, { short, type, value = '<text>' }: VerbOption): string =>
  `${short === undefined ? '    ' : `-${short}, `}--${name}${type === 'string' ? ` ${value}` : ''}`

/** One line: how the verb is written. */
export const usageLine = (name: string, { positionals = [] }: Verb): string =>
  `Usage: ${['mcp-host', name, ...positionals, '[options]'].join(' ')}`

/** Below a mistake: how the verb is written, and where the rest is. */
export const shortHelp = (name: string, verb: Verb): string =>
  `${usageLine(name, verb)}\nmcp-host ${name} --help lists the options.`

export function describeVerb(name: string, verb: Verb): string {
  const options = Object.entries<VerbOption>({ ...verb.options, ...COMMON_OPTIONS })
  const rows = options.map(([option, about]) => [left(option, about), about.help] as const)
  const notes = verb.notes === undefined ? [] : [verb.notes]
  return [usageLine(name, verb), verb.summary, `Options\n${columns(rows)}`, ...notes].join('\n\n')
}

export interface VerbArguments {
  readonly values: Readonly<Record<string, unknown>>
  readonly positionals: readonly string[]
}

/** A mistake in the command line, with the help that says how it is written. */
export const usageError = (what: string, help: string): StartError =>
  new StartError(`${what}\n\n${help}`, { exitCode: 2 })

function checkCount(verb: Verb, given: readonly string[], fail: (what: string) => StartError): void {
  const { positionals = [] } = verb
  const needed = positionals.filter(positional => !positional.startsWith('['))
  const missing = needed[given.length]
  if (missing !== undefined) throw fail(`${missing} is missing`)
  const extra = given[positionals.length]
  if (extra !== undefined && !positionals.at(-1)?.includes('...')) throw fail(`unexpected "${extra}"`)
}

/** The values of `argv` by option. Throws a StartError (exit code 2). */
export function readArguments(name: string, verb: Verb, argv: readonly string[]): VerbArguments {
  const known: Readonly<Record<string, VerbOption>> = { ...verb.options, ...COMMON_OPTIONS }
  const fail = (what: string) => usageError(what, shortHelp(name, verb))
  const options = Object.fromEntries(
    Object.entries(known).map(([option, { type, short }]) => [option, { type, ...(short !== undefined && { short }) }]),
  )
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true })
  const values: Record<string, unknown> = {}
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined
    if (!option) throw fail(unknownOption(name, verb, token.rawName, Object.keys(known)))
    const { value, inlineValue, rawName } = token
    if (option.type === 'boolean' && value !== undefined) throw fail(`Option '${rawName}' takes no value`)
    if (option.type === 'string' && (value === undefined || (!inlineValue && /^-./.test(value)))) {
      throw fail(`Option '${rawName} ${option.value ?? '<text>'}' needs a value`)
    }
    const before = values[token.name]
    if (!option.multiple) values[token.name] = value ?? true
    else values[token.name] = [...(Array.isArray(before) ? before : []), value]
  }
  if (values['help'] !== true) checkCount(verb, positionals, fail)
  return { values, positionals }
}

function unknownOption(name: string, { instead = {} }: Verb, rawName: string, known: readonly string[]): string {
  const plain = rawName.replace(/^-+/, '')
  const unknown = `Unknown option '${rawName}' of ${name}`
  if (Object.hasOwn(instead, plain)) return `${unknown}: ${instead[plain]}`
  const near = nearest(plain, known)
  return near === undefined ? unknown : `${unknown}; did you mean '--${near}'?`
}
