// What a verb of the CLI is: a module that says what it does, which options it has, and how it runs.
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
