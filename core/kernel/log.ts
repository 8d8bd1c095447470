// The host's log: structured lines on stderr, written by pino. Never a token, a secret or a whole session id; no more
// of one kind than an operator can read, and never at the cost of those who are served.
import { pino } from 'pino'
import { cutFields } from '../http/cut-fields.ts'
import { describeFailure } from '../http/describe-thrown.ts'
import { createLogBudget } from './log-budget.ts'
import { createLogWriter, type LogOutput } from './log-writer.ts'

type Write = (fields: object, message?: string) => void

/** The part of a pino logger that the host uses; any logger of this shape will do. */
export interface Logger {
  debug: Write
  info: Write
  warn: Write
  error: Write
  child(bindings: Record<string, unknown>): Logger
}

/** A log that a process ends with. */
export interface ProcessLog extends Logger {
  /** For what ends the process: such a line is never left out. */
  fatal: Write
  /** Tells what was left out and waits until the lines are on their way, a second at most. */
  flush(): Promise<void>
}

const PATIENCE = 1_000
const WARN = 40
const FATAL = 60
const LEFT_OUT = 'left out log lines of one kind'
const ALL_LINES = '--log-level debug writes all of them'

/** What strangers can cause: warnings and errors, and denials. What plugins tell at `info`, such as an audit, is whole. */
const isLimited = (level: number, fields: unknown) =>
  (level >= WARN && level < FATAL) || (typeof fields === 'object' && fields !== null && 'denied' in fields)

export interface LoggerOptions {
  /** True: the default of `level` is `debug`. */
  readonly verbose?: boolean
  /** Default: `info`. `debug` adds whole stacks, and no kind of line is cut off. */
  readonly level?: 'debug' | 'info' | 'warn' | 'error' | 'fatal'
  /** In each line, where several processes write to one log. */
  readonly pid?: number | undefined
  /** Files in stacks are shown from there. Default: the working directory. */
  readonly directory?: () => string
  readonly output?: LogOutput | undefined
  /** Makes of each line, which is JSON, what is written. */
  readonly render?: ((line: string) => string) | undefined
}

/** Lines of JSON on `output`, by default stderr, or what `render` makes of them. */
export function createLogger(options: LoggerOptions = {}): ProcessLog {
  const { verbose = false, level = verbose ? 'debug' : 'info', pid, directory = process.cwd, render } = options
  const base = pid === undefined ? null : { pid }
  const whole = level === 'debug'
  const dropped = (lines: number) =>
    `${JSON.stringify({ level: 40, time: Date.now(), ...base, lines, msg: 'dropped log lines: nobody reads stderr' })}\n`
  const writer = createLogWriter(options.output ?? process.stderr, dropped, render)
  const budget = createLogBudget((kind, lines) => unlimited.warn({ kind, lines, fix: ALL_LINES }, LEFT_OUT))
  const settings = {
    level,
    base,
    serializers: { err: (error: unknown) => describeFailure(error, { whole, directory: directory() }) },
    formatters: { log: cutFields },
  }
  const unlimited = pino(settings, writer)
  const log = pino(
    {
      ...settings,
      hooks: {
        logMethod(args, method, level) {
          const [fields, message] = args as [unknown, unknown]
          if (whole || !isLimited(level, fields) || budget.admits(typeof message === 'string' ? message : '')) {
            method.apply(this, args)
          }
        },
      },
    },
    writer,
  )
  const flush = async () => {
    budget.settle()
    await writer.flush(PATIENCE)
  }
  return Object.assign(log as Logger & Pick<ProcessLog, 'fatal'>, { flush })
}
