// What is wrong with a config, said so that an operator can mend it: place, what was found, what fits.
// Made by check-config.ts and by whoever checks more (toolsets, routes, plugins); shown by the CLI.
import { relative } from 'node:path'
import { StartError } from '../http/errors.ts'

export interface Problem {
  readonly kind: 'unknown option' | 'missing' | 'wrong value' | 'wrong name'
  /** Absolute. */
  readonly file: string
  readonly line?: number
  /** Such as `routes['/admin'].toolsets[0]`. */
  readonly path: string
  /** In words or shortened, never a secret. */
  readonly found: string
  readonly expected: string
  /** What was probably meant. */
  readonly suggestion?: string
}

/** One block a problem, blocks parted by an empty line. */
export const formatProblems = (problems: readonly Problem[]): string => problems.map(formatProblem).join('\n\n')

function formatProblem({ kind, file, line, path, found, expected, suggestion }: Problem): string {
  const place = line === undefined ? shortName(file) : `${shortName(file)}:${line}`
  const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
  return `${place}  ${path}\n  ${kind}${hint}\n  found ${found}; expected ${expected}`
}

/** A file's path as seen from where the process runs, if it is inside there. */
export function shortName(file: string): string {
  const short = relative(process.cwd(), file)
  return short === '' || short.startsWith('..') ? file : short
}

/** Throws a StartError (exit code 2) that shows every problem, if there are any. */
export function assertNoProblems(problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  throw new StartError(`The config has ${count}.\n\n${formatProblems(problems)}`, { exitCode: 2 })
}
