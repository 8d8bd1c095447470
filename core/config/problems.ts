// Collects config problems with location, found value and expected value, so that startup reports all of them at once.
import { relative } from 'node:path'
import { type ConfigLocation, formatPath, type Path, type Report, StartError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'

export interface SourceLocation {
  readonly file?: string
  readonly line?: number
}

export interface Problem extends SourceLocation {
  readonly kind: 'unknown option' | 'missing' | 'wrong value' | 'wrong name'
  readonly file: string
  readonly path: string
  /** The found value in words; never a secret. */
  readonly found: string
  readonly expected: string
  readonly suggestion?: string
}

export interface StartProblem extends SourceLocation {
  readonly code: string
  readonly path?: string
  readonly text: string
  readonly also?: readonly SourceLocation[]
  readonly cause?: unknown
  readonly exitCode?: 1 | 2 | 3
}

type ConfigProblem = Problem | StartProblem

const PROBLEM_CODES = {
  'unknown option': 'MH1011',
  missing: 'MH1012',
  'wrong value': 'MH1013',
  'wrong name': 'MH1014',
} as const satisfies Record<Problem['kind'], string>

export const codeOf = (problem: ConfigProblem): string =>
  'text' in problem ? problem.code : PROBLEM_CODES[problem.kind]

export const textOf = (problem: ConfigProblem): string => {
  if ('text' in problem) return problem.text
  const { kind, found, expected, suggestion } = problem
  const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
  return `${kind}${hint}\n  found ${found}; expected ${expected}`
}

export const formatProblems = (problems: readonly ConfigProblem[]): string =>
  problems.map(problem => formatProblem(problem)).join('\n\n')

function formatProblem(problem: ConfigProblem, code = `${codeOf(problem)} `): string {
  const place = formatLocation(problem)
  if (!('text' in problem)) return `${place}  ${problem.path}\n  ${code}${textOf(problem)}`
  const also = (problem.also ?? []).map(formatLocation).filter(other => other !== '' && other !== place)
  return [place, `${code}${problem.text}`].filter(Boolean).join(': ') + also.map(other => `\n  and ${other}`).join('')
}

export function formatLocation({ file, line }: SourceLocation): string {
  if (file === undefined) return ''
  return line === undefined ? shortName(file) : `${shortName(file)}:${line}`
}

/** Returns a path relative to `folder` (default: the working directory) if the file is inside, otherwise absolute. */
export function shortName(file: string, folder = process.cwd()): string {
  const short = relative(folder, file)
  return short === '' || short.startsWith('..') ? file : short
}

export class ConfigError extends StartError {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    const [only] = problems
    const mistakes = problems.filter((problem): problem is StartProblem => 'text' in problem)
    const isSingle = problems.length === 1 && only !== undefined && 'text' in only
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
    const code = problems.length === 1 && only ? codeOf(only) : 'MH1010'
    super(code, isSingle ? formatProblem(only, '') : `The config has ${count}.\n\n${formatProblems(problems)}`, {
      cause: mistakes.find(({ cause }) => cause !== undefined)?.cause,
      exitCode: mistakes.length === problems.length && mistakes.every(({ exitCode }) => exitCode === 1) ? 1 : 2,
    })
    this.problems = problems
  }
}

export function assertNoProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ConfigError(problems)
}

export function sortByFile<Some extends SourceLocation>(problems: readonly Some[]): Some[] {
  const files = [...new Set(problems.map(({ file }) => file))]
  const fileOf = ({ file }: Some) => files.indexOf(file)
  const lineOf = ({ line = Infinity }: Some) => line
  return [...problems].sort((one, other) => fileOf(one) - fileOf(other) || lineOf(one) - lineOf(other) || 0)
}

export type Problems = ReturnType<typeof createProblems>

export function createProblems(
  placeOf: (written: ConfigLocation) => SourceLocation & { path?: string },
  log: Pick<Logger, 'warn'>,
) {
  const found = new Map<string, ConfigProblem>()
  const unset = new Map<string, string>()
  let isOver = false

  /** Logs a warning at once. Throws an error that follows the last `assertNone`. */
  const report: Report = (mistake, severity = 'error') => {
    if (severity === 'warning') return warn({ ...placeOf(mistake.written), code: mistake.code, text: mistake.message })
    if (isOver) throw mistake
    add([toStartProblem(mistake)])
  }

  function toStartProblem({ code, message: text, written, cause, exitCode, also: others }: StartError): StartProblem {
    const also = others.map(placeOf)
    const more = { ...(cause !== undefined && { cause }), ...(also.length > 0 && { also }) }
    return { ...placeOf(written), code, text, exitCode, ...more }
  }

  function warn({ code, file, line, path, text }: StartProblem) {
    const place = { ...(file !== undefined && { file: shortName(file) }), ...(line !== undefined && { line }) }
    log.warn({ code, ...place, ...(path !== undefined && { path }) }, text)
  }

  function withUnset(problem: ConfigProblem): ConfigProblem {
    const variable = unset.get(problem.path ?? '')
    if (variable === undefined) return problem
    const why = `the environment variable ${variable} is not set`
    if ('text' in problem) return { ...problem, text: `${problem.text}; ${why}` }
    return { ...problem, found: `${problem.found}, because ${why}` }
  }

  function add(problems: readonly ConfigProblem[]) {
    for (const problem of problems.map(withUnset)) found.set(formatProblem(problem), problem)
  }

  return {
    add,
    warn,
    report,
    /** Reports an option whose environment variable is not set. Errors of the object around the option name it, too. */
    reportUnset(variable: string, at: Path, severity: 'error' | 'warning') {
      unset.set(formatPath(at.slice(0, -1)), variable)
      report(new StartError('MH1016', `the environment variable ${variable} is not set`, { at }), severity)
    },
    async attempt<Value>(part: () => Value | Promise<Value>): Promise<Value | undefined> {
      try {
        return await part()
      } catch (error) {
        if (!(error instanceof StartError)) throw error
        if (error instanceof ConfigError) add(error.problems)
        else report(error)
        return undefined
      }
    },
    /** Runs `part` after the last `assertNone`, and adds file and line to its StartError. */
    async withLocation(part: () => void | Promise<void>) {
      try {
        await part()
      } catch (error) {
        if (!(error instanceof StartError) || error instanceof ConfigError) throw error
        const mistake = toStartProblem(error)
        throw mistake.file === undefined ? error : new ConfigError([mistake])
      }
    },
    count: () => found.size,
    /** Throws a ConfigError with all problems, if any. `last` ends the collection. */
    assertNone(last?: 'last') {
      isOver = last !== undefined
      if (found.size > 0) throw new ConfigError(sortByFile([...found.values()]))
    },
  }
}
