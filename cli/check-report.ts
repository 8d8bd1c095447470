// What `mcp-host check --format json` says: every problem and warning as a value, for editors and CI.
import { resolve } from 'node:path'
import { ConfigError, type Place, textOf } from '../core/config/problems.ts'
import type { Logger } from '../core/create-host.ts'
import { errorText } from '../core/http/errors.ts'

/** One thing that is wrong, or may be. */
export interface Reported extends Place {
  readonly severity: 'error' | 'warning'
  /** The keys that lead to it in the config, or in a definition. */
  readonly path?: string
  /** What was found, and what to do. */
  readonly message: string
  readonly found?: string
  readonly expected?: string
  /** What was probably meant. */
  readonly suggestion?: string
  /** Where the other part of it is, as of two that clash. */
  readonly also?: readonly Place[]
  /** What else a warning says, by name. */
  readonly details?: Readonly<Record<string, unknown>>
}

export interface CheckReport {
  readonly ok: boolean
  /** The file, absolute; null where none was found or could be read. */
  readonly config: string | null
  readonly problems: readonly Reported[]
  readonly warnings: readonly Reported[]
}

/** What a start was stopped by. */
export function describeProblems(error: unknown): Reported[] {
  if (!(error instanceof ConfigError)) return [{ severity: 'error', message: errorText(error) }]
  return error.problems.map(told => {
    const { file, line, path } = told
    const place = { ...(file !== undefined && { file }), ...(line !== undefined && { line }) }
    const known = { severity: 'error', ...place, ...(path !== undefined && { path }), message: textOf(told) } as const
    if ('text' in told) return { ...known, ...(told.also && { also: told.also }) }
    const { found, expected, suggestion } = told
    return { ...known, found, expected, ...(suggestion !== undefined && { suggestion }) }
  })
}

/** A log that keeps warnings, and tells nobody anything. */
export function collectWarnings(cwd: string): { log: Logger; warnings: Reported[] } {
  const warnings: Reported[] = []
  const create = (bindings: Readonly<Record<string, unknown>>): Logger => {
    const keep = (fields: object, message = '') => {
      const { file, line, path, ...rest } = { ...bindings, ...fields } as Record<string, unknown>
      warnings.push({
        severity: 'warning',
        ...(typeof file === 'string' && { file: resolve(cwd, file) }),
        ...(typeof line === 'number' && { line }),
        ...(typeof path === 'string' && { path }),
        message,
        ...(Object.keys(rest).length > 0 && { details: rest }),
      })
    }
    const nothing = () => undefined
    return { debug: nothing, info: nothing, warn: keep, error: keep, child: more => create({ ...bindings, ...more }) }
  }
  return { log: create({}), warnings }
}
