// The help: the list of verbs, and of one verb its options.
import { COMMON_OPTIONS, type Verb, type VerbOption } from './verb.ts'

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
