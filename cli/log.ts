// The log of commands that load a config: JSON lines for programs, readable lines at a terminal.
import { createRequire } from 'node:module'
import { printableLines } from '../client/text.ts'
import { assertInstalled, installHint, isInstalled } from '../core/http/optional-packages.ts'
import { createLogger, type ProcessLog } from '../core/kernel/log.ts'
import type { LogValues } from './command.ts'
import type { CommandContext } from './context.ts'
import { describeWarning, hasColors, render, wrapText } from './render.ts'

const PRETTY = 'pino-pretty'

export interface CliLog extends ProcessLog {
  /** Stack traces show files relative to this directory: the config's folder, once known. */
  directory: string
  /** Ends the delay of warnings: writes those that were delayed, one line each. */
  releaseWarnings(): void
}

type Failure = Partial<Record<'type' | 'message' | 'cause' | 'stack' | 'hidden', string>>

function describeFailure({ type = 'Error', message = '', cause, stack, hidden }: Failure): string {
  const causeText = stack === undefined && cause !== undefined ? [`caused by: ${cause}`] : []
  return [stack ?? `${type}: ${message}`, ...causeText, ...(hidden === undefined ? [] : [`    … ${hidden}`])]
    .join('\n')
    .replaceAll('\n', '\n    ')
}

const valueText = (value: unknown): string =>
  typeof value === 'string' && /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value)

/** Renames fields that pino-pretty would interpret, such as `name`. */
function formatEntry(line: string) {
  const { level, time, pid, code, msg = '', err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const text = printableLines(`${code === undefined ? '' : `${code} `}${msg}`).replaceAll('\n', '\n    ')
  const fieldText = printableLines(
    Object.entries(fields)
      .map(([name, value]) => `${valueText(name)}=${valueText(value)}`)
      .join(' '),
  )
  return { level, time, ...(pid !== undefined && { pid }), msg: text, ...(err !== undefined && { err }), fieldText }
}

/** Formats JSON lines. pino-pretty is loaded on first use. */
export function createPretty(colorize: boolean): (line: string) => string {
  let pretty: ((line: object) => string) | undefined
  return line => {
    pretty ??= (createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty')).prettyFactory({
      colorize,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'fieldText',
      messageFormat: ({ msg, fieldText }, _key, _level, { colors }) =>
        `${msg}${fieldText === '' ? '' : ` ${colors.gray(`${fieldText}`)}`}`,
      customPrettifiers: { err: failure => printableLines(describeFailure(failure as Failure)) },
    })
    return pretty(formatEntry(line))
  }
}

const WARN = 40
/** Formats a JSON line as a warning, such as ` ! MH1031 Using a temporary key.` */
function warningLine(line: string, width: number | undefined): string {
  const { level: _, time: __, code, msg, file, line: number, path: ___, at: ____, ...details } = JSON.parse(line)
  const { head, facts } = describeWarning({ severity: 'warning', code, message: msg, file, line: number, details })
  return wrapText(`! ${head}${facts === '' ? '' : ` (${facts})`}`, width && width - 2, 9)
    .map(part => `  ${part}`)
    .join('\n')
}

interface LogSettings {
  readonly pid?: number
  /** At a terminal, delays warnings until `releaseWarnings`, because the first screen comes first. */
  readonly delaysWarnings?: boolean
}

/** Opens the log. Throws a StartError if pino-pretty is required and missing. */
export function openLog(
  values: LogValues,
  context: Pick<CommandContext, 'stderr' | 'env' | 'cwd'>,
  { pid, delaysWarnings = false }: LogSettings = {},
): CliLog {
  const { verbose = false } = values
  const { 'log-format': format, 'log-level': level = verbose ? 'debug' : 'info' } = values
  if (format === 'pretty') assertInstalled([PRETTY], { what: '--log-format pretty' })
  const isForTerminal = format === undefined && context.stderr.isTTY === true
  const isPretty = format === 'pretty' || (isForTerminal && isInstalled(PRETTY))
  const { stderr } = context
  const pretty = isPretty ? createPretty(hasColors(stderr, context.env)) : (line: string) => line
  let delayed = delaysWarnings && isForTerminal && !verbose ? new Set<string>() : undefined
  const log: CliLog = Object.assign(
    createLogger({
      level,
      pid,
      output: context.stderr,
      directory: () => log.directory,
      render(line) {
        if (!delayed || !line.startsWith(`{"level":${WARN},`)) return pretty(line)
        delayed.add(warningLine(line, stderr.columns || undefined))
        return ''
      },
    }),
    {
      directory: context.cwd,
      releaseWarnings() {
        if (delayed?.size) stderr.write(`${render([...delayed].join('\n'), stderr, context.env)}\n\n`)
        delayed = undefined
      },
    },
  )
  if (isForTerminal && !isPretty)
    log.info(
      { code: 'MH3011', run: installHint([PRETTY]) },
      'the log is JSON, because the package for readable output is not installed',
    )
  return log
}
