// What is wrong with a config, said so that an operator can mend it: place, what was found, what fits. Whoever checks tells
// it here and goes on, as far as it can; the start then stops once, with all of it (create-host.ts).
import { relative } from 'node:path'
import { type Report, StartError, type Written } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'

export interface Place {
  /** Absolute. */
  readonly file?: string
  readonly line?: number
}

/** A value that does not fit its schema. */
export interface Problem extends Place {
  readonly kind: 'unknown option' | 'missing' | 'wrong value' | 'wrong name'
  readonly file: string
  /** Such as `routes['/admin'].toolsets[0]`. */
  readonly path: string
  /** In words or shortened, never a secret. */
  readonly found: string
  readonly expected: string
  /** What was probably meant. */
  readonly suggestion?: string
}

/** Everything else: what does not go together, what is not there, what cannot be loaded. */
export interface Mistake extends Place {
  readonly path?: string
  /** What was found, and what to do. */
  readonly text: string
  /** Where the other part of it is, as of two that clash. */
  readonly also?: readonly Place[]
  /** What was thrown; for those who ask for stacks. */
  readonly cause?: unknown
  /** 1 where it is not the config that must change. */
  readonly exitCode?: 1 | 2 | 3
}

type Told = Problem | Mistake

/** What was found and what fits, on lines of their own but the first. */
export const textOf = (told: Told): string => {
  if ('text' in told) return told.text
  const { kind, found, expected, suggestion } = told
  const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
  return `${kind}${hint}\n  found ${found}; expected ${expected}`
}

/** One block a problem, blocks parted by an empty line. */
export const formatProblems = (problems: readonly Told[]): string => problems.map(formatProblem).join('\n\n')

function formatProblem(told: Told): string {
  const place = formatPlace(told)
  if (!('text' in told)) return `${place}  ${told.path}\n  ${textOf(told)}`
  const also = (told.also ?? []).map(formatPlace).filter(other => other !== '' && other !== place)
  return [place, told.text].filter(Boolean).join(': ') + also.map(other => `\n  and ${other}`).join('')
}

/** `mcp.config.ts:12`; empty where nobody knows. */
export function formatPlace({ file, line }: Place): string {
  if (file === undefined) return ''
  return line === undefined ? shortName(file) : `${shortName(file)}:${line}`
}

/** A file's path as seen from a folder, by default that of the process, if it is inside there. */
export function shortName(file: string, folder = process.cwd()): string {
  const short = relative(folder, file)
  return short === '' || short.startsWith('..') ? file : short
}

/** Everything that is wrong, in one error. */
export class ConfigError extends StartError {
  readonly problems: readonly Told[]

  constructor(problems: readonly Told[]) {
    const [only] = problems
    const mistakes = problems.filter((told): told is Mistake => 'text' in told)
    const isAlone = problems.length === 1 && only !== undefined && 'text' in only
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
    super(isAlone ? formatProblem(only) : `The config has ${count}.\n\n${formatProblems(problems)}`, {
      cause: mistakes.find(({ cause }) => cause !== undefined)?.cause,
      exitCode: mistakes.length === problems.length && mistakes.every(({ exitCode }) => exitCode === 1) ? 1 : 2,
    })
    this.problems = problems
  }
}

/** Throws a ConfigError that shows every problem, if there are any. */
export function assertNoProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ConfigError(problems)
}

/** Those of one file together, in the order of its lines; what has no line comes last of its file. */
export function inFileOrder<Some extends Place>(problems: readonly Some[]): Some[] {
  const files = [...new Set(problems.map(({ file }) => file))]
  const fileOf = ({ file }: Some) => files.indexOf(file)
  const lineOf = ({ line = Infinity }: Some) => line
  return [...problems].sort((one, other) => fileOf(one) - fileOf(other) || lineOf(one) - lineOf(other) || 0)
}

/** Takes what is wrong from whoever finds it, until it is told. */
export interface Problems {
  add(problems: readonly Told[]): void
  /** Logs what does not stop the start. */
  warn(mistake: Mistake): void
  /** A warning is logged at once. An error that comes after the last `assertNone` is thrown. */
  readonly report: Report
  /** What `part` gives. A StartError that it throws is taken, and the answer is undefined. */
  attempt<Value>(part: () => Value | Promise<Value>): Promise<Value | undefined>
  /** Runs `part`, which comes after the last `assertNone`: a StartError that it throws gets its file and line. */
  placed(part: () => void | Promise<void>): Promise<void>
  readonly count: () => number
  /** Throws a ConfigError that says everything, if there is anything. `last`: nothing is collected any more. */
  assertNone(last?: 'last'): void
}

export function createProblems(
  placeOf: (written: Written) => Place & { path?: string },
  log: Pick<Logger, 'warn'>,
): Problems {
  // A module that two toolsets name is wrong once.
  const found = new Map<string, Told>()
  let isOver = false

  const report: Report = (mistake, severity = 'error') => {
    if (severity === 'warning') return warn({ ...placeOf(mistake.written), text: mistake.message })
    if (isOver) throw mistake
    add([mistakeOf(mistake)])
  }

  function mistakeOf({ message: text, written, cause, exitCode, also: others }: StartError): Mistake {
    const also = others.map(placeOf)
    const more = { ...(cause !== undefined && { cause }), ...(also.length > 0 && { also }) }
    return { ...placeOf(written), text, exitCode, ...more }
  }

  function warn({ file, line, path, text }: Mistake) {
    const place = { ...(file !== undefined && { file: shortName(file) }), ...(line !== undefined && { line }) }
    log.warn({ ...place, ...(path !== undefined && { path }) }, text)
  }

  function add(problems: readonly Told[]) {
    for (const told of problems) found.set(formatProblem(told), told)
  }

  return {
    add,
    warn,
    report,
    async attempt(part) {
      try {
        return await part()
      } catch (error) {
        if (!(error instanceof StartError)) throw error
        if (error instanceof ConfigError) add(error.problems)
        else report(error)
        return undefined
      }
    },
    async placed(part) {
      try {
        await part()
      } catch (error) {
        if (!(error instanceof StartError) || error instanceof ConfigError) throw error
        const mistake = mistakeOf(error)
        throw mistake.file === undefined ? error : new ConfigError([mistake])
      }
    },
    count: () => found.size,
    assertNone(last) {
      isOver = last !== undefined
      if (found.size > 0) throw new ConfigError(inFileOrder([...found.values()]))
    },
  }
}
