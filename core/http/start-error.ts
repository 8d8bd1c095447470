// A mistake that stops the start, and the keys that lead to it: told by whoever finds it, and shown to operators alone.
// Which file and line that is, create-host.ts knows.

/** The keys that lead to a value of the config, from its top. */
export type Path = readonly (string | number)[]

/** Where something is written: keys of the config or, where `of` is given, of that definition. */
export interface Written {
  readonly at?: Path
  readonly of?: object
}

/** Takes a mistake and lets its finder go on to the next. A warning (default: an error) does not stop the start. */
export type Report = (mistake: StartError, severity?: 'error' | 'warning') => void

/** For finders whose first mistake is their last. */
export const stopAtFirst: Report = mistake => {
  throw mistake
}

/** A path as one would write it: `routes['/admin'].toolsets[0]`. The empty path is `(config)`. */
export function formatPath(path: Path): string {
  if (path.length === 0) return '(config)'
  return path
    .map(key => (typeof key === 'number' ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `['${key}']`))
    .join('')
    .replace(/^\./, '')
}

export interface StartErrorOptions extends Written {
  cause?: unknown
  /** Default: 2 where the place is told, else 1. 3: `audit verify` has no key to look with. */
  exitCode?: 1 | 2 | 3
  /** What else it is about, such as the other of two that clash. */
  also?: readonly Written[]
}

/**
 * A mistake in the config or at start-up: shown to the operator whole, without a stack. `at`, the keys of the config that
 * lead to it, begins its message, and gives it a file and a line.
 */
export class StartError extends Error {
  /** What the process exits with: 2 for a config that must change, 1 for everything else. */
  readonly exitCode: 1 | 2 | 3
  written: Written
  readonly also: readonly Written[]

  constructor(text: string, { cause, at, of, exitCode = at || of ? 2 : 1, also = [] }: StartErrorOptions = {}) {
    super(at && at.length > 0 && !of ? `${formatPath(at)}: ${text}` : text, { cause })
    this.name = 'StartError'
    this.exitCode = exitCode
    this.written = { ...(at && { at }), ...(of && { of }) }
    this.also = also
  }

  /** The same mistake, which is here if it does not say itself where it is. */
  orAt(at: Path): this {
    if (!this.written.at && !this.written.of && at.length > 0) this.written = { at }
    return this
  }
}

/** What `part` gives; a StartError that it throws is reported, and the answer is undefined. */
export function reporting<Value>(report: Report, part: () => Value): Value | undefined {
  try {
    return part()
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    report(error)
    return undefined
  }
}
