// The host's log: structured lines on stderr, written by pino. Never a token, a secret or a whole session id; no more
// of one kind than an operator can read, and never at the cost of those who are served.
import { pino } from 'pino'
import { describeThrown } from '../http/describe-thrown.ts'
import { createLogBudget } from './log-budget.ts'
import { createLogWriter } from './log-writer.ts'

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

/** Characters of one text in a line. */
const MAX_TEXT = 1_000
const PATIENCE = 1_000
const WARN = 40
const FATAL = 60

/** What a client chose may be in any field, and of any size. */
const cutText = (_key: string, value: unknown) =>
  typeof value === 'string' && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value

function cutFields(fields: Record<string, unknown>): Record<string, unknown> {
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

/** What strangers can cause: warnings and errors, and denials. What plugins tell at `info`, such as an audit, is whole. */
const isLimited = (level: number, fields: unknown) =>
  (level >= WARN && level < FATAL) || (typeof fields === 'object' && fields !== null && 'denied' in fields)

/** `verbose` adds debug lines and the stacks of errors; `pid`, where several processes write to one log, is in each line. */
export function createLogger({ verbose = false, pid }: { verbose?: boolean; pid?: number } = {}): ProcessLog {
  const base = pid === undefined ? null : { pid }
  const writer = createLogWriter(process.stderr, lines => {
    const told = { level: 40, time: Date.now(), ...base, lines, msg: 'dropped log lines: nobody reads stderr' }
    return `${JSON.stringify(told)}\n`
  })
  const budget = createLogBudget((kind, lines) => unlimited.warn({ kind, lines }, 'left out log lines of one kind'))
  const options = {
    level: verbose ? 'debug' : 'info',
    base,
    serializers: { err: (error: unknown) => describeThrown(error, verbose) },
    formatters: { log: cutFields },
  }
  const unlimited = pino(options, writer)
  const log = pino(
    {
      ...options,
      hooks: {
        logMethod(args, method, level) {
          const [fields, message] = args as [unknown, unknown]
          if (!isLimited(level, fields) || budget.admits(typeof message === 'string' ? message : '')) {
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
