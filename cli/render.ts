// Layout and color of all output for people: wrapped text, columns, tables, code frames.
import { readFileSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { printable, printableLines } from '../client/text.ts'
import { ConfigError, formatLocation, formatProblems, type SourceLocation } from '../core/config/problems.ts'
import { errorText } from '../core/http/errors.ts'

export interface CommandOutput extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
}

export const hasColors = ({ isTTY }: CommandOutput, { NO_COLOR = '', TERM }: NodeJS.ProcessEnv): boolean =>
  isTTY === true && NO_COLOR === '' && TERM !== 'dumb'

/** Styles apply only to text with a code, a file position, or a finding of `doctor`. */
const STYLES: ReadonlyArray<readonly [RegExp, Parameters<typeof styleText>[0]]> = [
  [/^(?: {2})?mcp-host \d\S*|(?<=^|: |MH\d{4} )[^\s:]+\.\w+:\d+(?=:|\s|$)/gm, 'bold'],
  [/^(?:mcp-host: error MH\d{4}|WRONG(?= {2}))/gm, 'red'],
  [/^ *! MH\d{4}|^note (?= {2})/gm, 'yellow'],
  [/^ok {3}(?= {2})|^The config is valid\.$/gm, 'green'],
  [/^ {4} *\d+ │.*$/gm, 'dim'],
]

/** Escapes control characters, and styles the text if the output is a terminal with colors. */
export function render(text: string, output: CommandOutput, env: NodeJS.ProcessEnv): string {
  const plain = printableLines(text)
  if (!hasColors(output, env)) return plain
  return STYLES.reduce((styled, [found, style]) => styled.replace(found, match => styleText(style, match)), plain)
}

const MAX_FRAMES = 8
const SECRET = /secret|passw|token|key|credential/i

/** Three lines of the file; empty if it cannot be read, or if the lines can contain a secret. */
function codeFrame({ file, line, path = '' }: SourceLocation & { readonly path?: string }): string {
  if (file === undefined || line === undefined) return ''
  try {
    const lines = readFileSync(file, 'utf8').split(/\r?\n/)
    const shown = [line - 1, line, line + 1].filter(number => number >= 1 && number <= lines.length)
    if (SECRET.test([path, ...shown.map(number => lines[number - 1])].join('\n'))) return ''
    const width = String(shown.at(-1)).length
    const rows = shown.map(number => {
      const mark = number === line ? '>' : ' '
      return `  ${mark} ${String(number).padStart(width)} │ ${printable((lines[number - 1] ?? '').trimEnd(), 100)}`
    })
    return ['', ...rows].join('\n')
  } catch {
    return ''
  }
}

export function withFrames(error: unknown, text: string, { isTTY }: CommandOutput): string {
  if (!(error instanceof ConfigError) || isTTY !== true) return text
  const [only] = error.problems
  if (error.problems.length === 1 && only && 'text' in only) return text + codeFrame(only)
  return error.problems.slice(0, MAX_FRAMES).reduce((shown, reported) => {
    const own = formatProblems([reported])
    return shown.replace(own, () => own + codeFrame(reported))
  }, text)
}

export interface ReportedProblem extends SourceLocation {
  readonly severity: 'error' | 'warning'
  readonly code?: string
  readonly path?: string
  readonly message: string
  readonly found?: string
  readonly expected?: string
  readonly suggestion?: string
  readonly also?: readonly SourceLocation[]
  readonly details?: Readonly<Record<string, unknown>>
}

function valueText(value: unknown): string {
  if (value instanceof Error) return errorText(value)
  if (Array.isArray(value)) return value.map(valueText).join(', ')
  if (typeof value !== 'object' || value === null) return String(value)
  const parts = Object.entries(value).map(([key, one]) => `${key}: ${valueText(one)}`)
  return parts.join('; ')
}

export function describeWarning({ code, message, details: { plugin, fix, ...about } = {}, ...place }: ReportedProblem) {
  const facts = Object.entries(about).map(([name, value]) => `${name} ${valueText(value)}`)
  const where = formatLocation(place)
  const whose = plugin === undefined ? '' : `plugins.${plugin}: `
  return {
    head: `${code === undefined ? '' : `${code} `}${where === '' ? '' : `${where}: `}${whose}${message}`,
    facts: facts.join(', '),
    fix: fix === undefined ? undefined : valueText(fix),
  }
}

/** Breaks text between words. Words longer than `width` are kept whole. `hang`: the indent of all lines except the first. */
export function wrapText(text: string, width = Number.POSITIVE_INFINITY, hang = 0): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(lines.length === 0 ? word : ' '.repeat(hang) + word)
  }
  return lines
}

/** Wraps each line except code frames. Continuation lines keep the indent of the line, or of its second column. */
export const wrapLines = (text: string, width?: number): string =>
  text
    .split('\n')
    .flatMap(line => (line.includes(' │ ') ? line : wrapText(line, width, /^ *(?:\S+ {2,})?/.exec(line)?.[0].length)))
    .join('\n')

/** The minimum width of a wrapped right column; with less space the text starts on its own line. */
export const MIN_TEXT = 36
const INDENT = 8

/** A shell command, wrapped with backslashes. Commands with quotes stay on one line. */
export function commandLines(command: string, width: number): string[] {
  if (command.includes("'")) return [command]
  return wrapText(command, width - 2).map((line, index, all) => (index < all.length - 1 ? `${line} \\` : line))
}

/** Two columns, the right one wrapped at `width` unless it is a list of lines. */
export function formatColumns(
  rows: ReadonlyArray<readonly [string, string | readonly string[]]>,
  width = Number.POSITIVE_INFINITY,
): string {
  const left = rows.reduce((max, [name]) => Math.max(max, Math.min(name.length, 100)), 0)
  const space = width - left - 4
  const isNarrow = space < MIN_TEXT
  const lines = rows.flatMap(([name, text]) => {
    const wrap = (max: number) => (typeof text === 'string' ? wrapText(text, max) : text)
    if (isNarrow) return [`  ${name}`, ...wrap(width - INDENT).map(line => ' '.repeat(INDENT) + line)]
    return wrap(space).map((line, index) => `  ${(index === 0 ? name : '').padEnd(left)}  ${line}`)
  })
  return lines.map(line => line.trimEnd()).join('\n')
}

export type Cell = string | number | undefined

const MIN_WIDTH = 8

function isNumeric(texts: readonly string[]): boolean {
  const known = texts.filter(text => text !== '-')
  return known.length > 0 && known.every(text => /^[\d.]{1,12}(?: %)?$/.test(text))
}

function narrow(widths: number[], mayShrink: readonly boolean[], max: number): void {
  while (widths.reduce((sum, width) => sum + width, 0) > max) {
    const widest = Math.max(...widths.filter((_, column) => mayShrink[column]), 0)
    if (widest <= MIN_WIDTH) return
    widths[widths.findIndex((width, column) => mayShrink[column] && width === widest)] = widest - 1
  }
}

/**
 * Table lines, numbers right-aligned. No header if all `head` texts are empty. `width`: maximum line length; longer cells are
 * cut.
 */
export function tableLines(
  head: readonly string[],
  rows: ReadonlyArray<readonly Cell[]>,
  width = Number.POSITIVE_INFINITY,
  gap = '  ',
): string[] {
  const body = rows.map(row => row.map(cell => (cell === undefined ? '-' : printable(String(cell), 2_000))))
  const numeric = head.map((_, column) => isNumeric(body.map(row => row[column] ?? '')))
  const all = head.some(title => title !== '') ? [head, ...body] : body
  const widths = head.map((_, column) => all.reduce((max, row) => Math.max(max, row[column]?.length ?? 0), 0))
  narrow(
    widths,
    numeric.map(one => !one),
    width - gap.length * (head.length - 1),
  )
  const cellText = (text: string, own: number, isNumber = false) => {
    const shortened = text.length <= own ? text : `${text.slice(0, own - 1)}…`
    return isNumber ? shortened.padStart(own) : shortened.padEnd(own)
  }
  return all.map(row =>
    widths
      .map((own, column) => cellText(row[column] ?? '', own, numeric[column]))
      .join(gap)
      .trimEnd(),
  )
}
