// Declares commands and parses their options from `argv`, and prints their help.
import { parseArgs } from 'node:util'
import type { StartError } from '../core/http/errors.ts'
import { nearest } from '../core/mcp/nearest.ts'
import { type CommandContext, usage } from './context.ts'
import { columns, nearestHint } from './text.ts'

interface VerbOption {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: boolean
  readonly value?: string
  readonly choices?: readonly string[]
  readonly help: string
}

export type VerbOptionTable = Readonly<Record<string, VerbOption>>

type ValueOf<Option extends VerbOption> = Option extends { readonly type: 'boolean' }
  ? boolean
  : Option extends { readonly multiple: true }
    ? readonly string[]
    : Option extends { readonly choices: readonly (infer Choice)[] }
      ? Choice
      : string

export type VerbValues<Table extends VerbOptionTable> = {
  readonly [Name in keyof Table]?: ValueOf<Table[Name]>
} & { readonly verbose?: boolean }

interface VerbDeclaration<Table extends VerbOptionTable> {
  readonly summary: string
  /** `URL` is required, `[URL]` is optional, `[X...]` takes the rest. */
  readonly positionals?: readonly string[]
  readonly options: Table
  readonly instead?: Readonly<Record<string, string>>
  readonly notes?: string
  /** Returns the exit code; undefined is 0. */
  run(values: VerbValues<Table>, positionals: readonly string[], context: CommandContext): Result
}

type Result = Promise<number | undefined> | Promise<void>

export type Verb = Omit<VerbDeclaration<VerbOptionTable>, 'run'> & {
  run(values: Readonly<Record<string, unknown>>, positionals: readonly string[], context: CommandContext): Result
}

export const defineVerb = <const Table extends VerbOptionTable>(declaration: VerbDeclaration<Table>): Verb =>
  declaration as unknown as Verb

const COMMON_OPTIONS: VerbOptionTable = {
  verbose: { type: 'boolean', help: 'debug lines in the log, stacks of errors' },
  help: { type: 'boolean', short: 'h', help: 'this text' },
}

export const ENV_FILE_OPTION = {
  'env-file': {
    type: 'string',
    value: '<file>',
    multiple: true,
    help: 'environment variables, NAME=value a line; what is set already wins; may be repeated, the later wins',
  },
} as const satisfies VerbOptionTable

export const CONFIG_OPTION = {
  config: {
    type: 'string',
    short: 'c',
    value: '<file>',
    help: 'default: mcp.config.{ts,js,json,yaml,...} here or above',
  },
} as const satisfies VerbOptionTable

export const LOG_OPTIONS = {
  'log-format': { type: 'string', choices: ['json', 'pretty'], help: 'default: pretty at a terminal, else json' },
  'log-level': {
    type: 'string',
    choices: ['debug', 'info', 'warn', 'error', 'fatal'],
    help: 'the least that is logged; default: info',
  },
} as const satisfies VerbOptionTable

export type LogValues = VerbValues<typeof LOG_OPTIONS>

export const START_OPTIONS = {
  ...CONFIG_OPTION,
  ...ENV_FILE_OPTION,
  ...LOG_OPTIONS,
  workers: {
    type: 'string',
    value: '<n>',
    help: 'processes that share the port, or auto for one per core; default: this one alone',
  },
  frozen: { type: 'boolean', help: 'serve only what the lock says: see mcp-host lock' },
  lock: { type: 'string', value: '<file>', help: '--frozen: the lock; default: mcp.lock.json beside the config' },
  role: {
    type: 'string',
    choices: ['worker', 'front', 'both'],
    help: 'worker runs tasks that others keep, front keeps them alone, both does both; default: as plugins.tasks says',
  },
} as const satisfies VerbOptionTable

export type StartOptions = VerbValues<typeof START_OPTIONS>

export function readSeconds(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const seconds = Number(text)
  if (seconds > 0 && seconds <= 86_400) return seconds * 1_000
  throw usage(`--${option} is a number of seconds, at most 86400`)
}

interface VerbGroup {
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
  return ['Usage: mcp-host <verb> [options]', ...lines, `Options\n${more}`].join('\n\n')
}

const valueName = ({ choices, value = '<text>' }: VerbOption) => (choices ? `<${choices.join('|')}>` : value)

const usageLine = (name: string, { positionals = [] }: Verb): string =>
  `Usage: ${['mcp-host', name, ...positionals, '[options]'].join(' ')}`

export function describeVerb(name: string, verb: Verb): string {
  const rows = Object.entries({ ...verb.options, ...COMMON_OPTIONS }).map(([option, about]) => {
    const short = about.short === undefined ? '    ' : `-${about.short}, `
    return [`${short}--${option}${about.type === 'string' ? ` ${valueName(about)}` : ''}`, about.help] as const
  })
  const notes = verb.notes === undefined ? [] : [verb.notes]
  return [usageLine(name, verb), verb.summary, `Options\n${columns(rows)}`, ...notes].join('\n\n')
}

export const usageError = (what: string, help: string): StartError => usage(`${what}\n\n${help}`)

/** Parses options and arguments. Throws a StartError (exit code 2) that never quotes a value, which can be a secret. */
export function readArguments(name: string, verb: Verb, argv: readonly string[]) {
  const known: VerbOptionTable = { ...verb.options, ...COMMON_OPTIONS }
  const fail = (what: string) =>
    usageError(what, `${usageLine(name, verb)}\nmcp-host ${name} --help lists the options.`)
  const options = Object.fromEntries(
    Object.entries(known).map(([option, { type, short }]) => [option, { type, ...(short !== undefined && { short }) }]),
  )
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true })
  const values: Record<string, unknown> = {}
  const given: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') given.push(token.value)
    if (token.kind !== 'option') continue
    const { value, inlineValue, rawName } = token
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined
    if (!option) throw fail(unknownOption(name, verb, rawName, Object.keys(known)))
    const { type, multiple, choices } = option
    if (type === 'boolean' && value !== undefined) throw fail(`Option '${rawName}' takes no value`)
    if (type === 'string' && (value === undefined || (!inlineValue && /^-./.test(value))))
      throw fail(`Option '${rawName} ${valueName(option)}' needs a value`)
    if (choices && !choices.includes(String(value)))
      throw fail(
        `${rawName} is ${JSON.stringify(value)}; give one of ${choices.join(', ')}${nearestHint(String(value), choices)}`,
      )
    const before = values[token.name]
    values[token.name] = multiple ? [...(Array.isArray(before) ? before : []), value] : (value ?? true)
  }
  if (values['help'] !== true) checkCount(verb, given, fail)
  return { values, positionals: given }
}

function checkCount({ positionals = [] }: Verb, given: readonly string[], fail: (what: string) => StartError): void {
  const missing = positionals.filter(positional => !positional.startsWith('['))[given.length]
  if (missing !== undefined) throw fail(`${missing} is missing`)
  const extra = given[positionals.length]
  if (extra !== undefined && !positionals.at(-1)?.includes('...')) throw fail(`unexpected "${extra}"`)
}

function unknownOption(name: string, { instead = {} }: Verb, rawName: string, known: readonly string[]): string {
  const plain = rawName.replace(/^-+/, '')
  const unknown = `Unknown option '${rawName}' of ${name}`
  if (Object.hasOwn(instead, plain)) return `${unknown}: ${instead[plain]}`
  const near = nearest(plain, known)
  return near === undefined ? unknown : `${unknown}; did you mean '--${near}'?`
}
