// The host's log: structured lines on stderr, written by pino. Never a token, a secret or a whole session id; no more
// of one kind than an operator can read, and never at the cost of those who are served.

import { pino } from 'pino'
import { describeFailure } from '../http/describe-thrown.ts'

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

/** Characters of one text in a line. */
const MAX_TEXT = 1_000

/** What a client chose may be in any field, and of any size. */
const cutText = (_key: string, value: unknown) =>
  typeof value === 'string' && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value

/** The fields of a line, none of them too long. */
export function cutFields(fields: Record<string, unknown>): Record<string, unknown> {
  const cut: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'err') cut[name] = value
    else if (typeof value === 'object' && value !== null) cut[name] = cutObject(value)
    else cut[name] = cutText(name, value)
  }
  return cut
}

function cutObject(value: object): unknown {
  try {
    const json = JSON.stringify(value, cutText)
    return json === undefined || json.length <= 4 * MAX_TEXT ? value : `${json.slice(0, MAX_TEXT)}…`
  } catch {
    return 'a value that cannot be written as JSON'
  }
}

/** Lines of one kind in one span. */
export const MAX_LINES = 30
/** The span, milliseconds. */
export const LINE_SPAN = 10_000
/** Kinds that are told apart in one span; all others are one. */
const MAX_KINDS = 500

export interface LogBudget {
  /** False: the line is left out, and counted. */
  admits(kind: string): boolean
  /** Tells now what was left out. */
  settle(): void
}

/** `tell` hears once a span of each kind of which lines were left out. */
export function createLogBudget(tell: (kind: string, lines: number) => void): LogBudget {
  const written = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined

  function settle() {
    clearTimeout(timer)
    timer = undefined
    const counts = [...written]
    written.clear()
    for (const [kind, lines] of counts) if (lines > MAX_LINES) tell(kind, lines - MAX_LINES)
  }

  return {
    admits(message) {
      const kind = written.has(message) || written.size < MAX_KINDS ? message : 'lines of other kinds'
      const lines = (written.get(kind) ?? 0) + 1
      written.set(kind, lines)
      timer ??= setTimeout(settle, LINE_SPAN).unref()
      return lines <= MAX_LINES
    },
    settle,
  }
}

/** Bytes that may wait for a reader of stderr. */
export const MAX_WAITING_LOG = 1024 * 1024

/** Those that have been given a listener: all hosts of a process write to one. */
const heard = new WeakSet<object>()

export type LogOutput = NodeJS.WritableStream & Pick<NodeJS.WriteStream, 'writableLength'>

export interface LogWriter {
  write(line: string): void
  /** Resolves once everything is on its way, or after `patience` milliseconds. */
  flush(patience: number): Promise<void>
}

/** `dropped`: the line that tells how many were. `render` makes of a line what is written. */
export function createLogWriter(
  stderr: LogOutput,
  dropped: (lines: number) => string,
  render: (line: string) => string = line => line,
): LogWriter {
  let lost = 0
  // A reader that is gone ends nothing but the log.
  if (!heard.has(stderr)) stderr.on('error', () => undefined)
  heard.add(stderr)

  function write(line: string) {
    // One line alone may be larger than the bound.
    if (stderr.writableLength > 0 && stderr.writableLength + line.length > MAX_WAITING_LOG) {
      lost++
      return
    }
    if (lost > 0) {
      const lines = lost
      lost = 0
      stderr.write(render(dropped(lines)))
    }
    stderr.write(render(line))
  }

  return {
    write,
    async flush(patience) {
      const end = performance.now() + patience
      while (stderr.writableLength > 0 && performance.now() < end) await new Promise(resolve => setTimeout(resolve, 10))
    },
  }
}
