// Reads what follows a verb. A mistake names the verb, what was probably meant, and never a value: it may be a secret.
import { parseArgs } from 'node:util'
import { StartError } from '../core/http/errors.ts'
import { nearest } from '../core/mcp/nearest.ts'
import { shortHelp } from './usage.ts'
import { COMMON_OPTIONS, type Verb, type VerbOption } from './verb.ts'

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
