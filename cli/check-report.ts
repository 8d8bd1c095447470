// What `mcp-host check` says: every problem and warning as a value, for editors and CI, and warnings as text.
import { resolve } from 'node:path'
import { printable } from '../client/text.ts'
import { ConfigError, formatPlace, type Place, textOf } from '../core/config/problems.ts'
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

const nothing = () => undefined
const SILENT: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => SILENT }

/** A log that keeps warnings; the rest goes on to `inner`. Default: to nobody. */
export function collectWarnings(cwd: string, inner = SILENT): { log: Logger; warnings: Reported[] } {
  const warnings: Reported[] = []
  const create = (inner: Logger, bindings: Readonly<Record<string, unknown>>): Logger => {
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
    return {
      debug: inner.debug.bind(inner),
      info: inner.info.bind(inner),
      warn: keep,
      error: keep,
      child: more => create(inner.child(more), { ...bindings, ...more }),
    }
  }
  return { log: create(inner, {}), warnings }
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return value
  return value instanceof Error ? errorText(value) : (JSON.stringify(value) ?? String(value))
}

/** Where it is, the message, what it is about, and how to mend it. */
function warningText({ message, details: { plugin, fix, ...about } = {}, ...place }: Reported): string {
  const facts = Object.entries(about).map(([name, value]) => `${name} ${valueText(value)}`)
  const whose = plugin === undefined ? '' : `plugins.${plugin}: `
  const where = formatPlace(place)
  const lines = [
    `  ${where === '' ? '' : `${where}: `}${whose}${message}`,
    ...(facts.length > 0 ? [`    ${facts.join(', ')}`] : []),
    ...(fix === undefined ? [] : [`    fix: ${valueText(fix)}`]),
  ]
  return lines.map(line => printable(line)).join('\n')
}

export const warningsText = (warnings: readonly Reported[]): string =>
  warnings.length === 0 ? '' : `Warnings\n${warnings.map(warningText).join('\n')}\n\n`
