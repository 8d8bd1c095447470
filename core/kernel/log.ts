// The host's log: JSON lines on stderr, without tokens, secrets and full session ids, limited so that it never delays requests.
import { pino } from 'pino'
import { systemClock, type Timer } from '../http/clock.ts'
import { describeFailure } from '../http/describe-thrown.ts'

type Write = (fields: object, message?: string) => void

/** The part of a pino logger that the host uses. */
export interface Logger {
  debug: Write
  info: Write
  warn: Write
  error: Write
  child(bindings: Record<string, unknown>): Logger
}

export interface ProcessLog extends Logger {
  /** Logs why the process ends; never dropped. */
  fatal: Write
  /** Reports dropped lines and waits at most one second for the output. */
  flush(): Promise<void>
}

const MAX_TEXT = 1_000

const cutText = (_key: string, value: unknown) =>
  typeof value === 'string' && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value

function cutObject(value: object): unknown {
  try {
    const json = JSON.stringify(value, cutText)
    return json === undefined || json.length <= 4 * MAX_TEXT ? value : `${json.slice(0, MAX_TEXT)}…`
  } catch {
    return 'a value that cannot be written as JSON'
  }
}

const cutFields = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (name === 'err') return [name, value]
      return [name, typeof value === 'object' && value !== null ? cutObject(value) : cutText(name, value)]
    }),
  )

/** Maximum lines of one kind per span. */
export const MAX_LINES = 30
/** Milliseconds. */
const LINE_SPAN = 10_000
const MAX_KINDS = 500

/** Limits lines with the same message. `report` receives the number of dropped lines once per span. */
export function createLogBudget(report: (kind: string, lines: number) => void, clock = systemClock) {
  const written = new Map<string, number>()
  let timer: Timer | undefined

  function reportDropped() {
    clock.clear(timer)
    timer = undefined
    const counts = [...written]
    written.clear()
    for (const [kind, lines] of counts) if (lines > MAX_LINES) report(kind, lines - MAX_LINES)
  }

  return {
    allows(message: string): boolean {
      const kind = written.has(message) || written.size < MAX_KINDS ? message : 'lines of other kinds'
      const lines = (written.get(kind) ?? 0) + 1
      written.set(kind, lines)
      timer ??= clock.setTimeout(reportDropped, LINE_SPAN).unref()
      return lines <= MAX_LINES
    },
    reportDropped,
  }
}

export const MAX_LOG_BUFFER = 1024 * 1024

const withErrorListener = new WeakSet<object>()

type LogOutput = NodeJS.WritableStream & Pick<NodeJS.WriteStream, 'writableLength'>

/**
 * Writes lines without waiting for the reader; beyond `MAX_LOG_BUFFER` they are dropped. `formatDropped` formats the line that
 * reports their number.
 */
export function createLogWriter(
  stderr: LogOutput,
  formatDropped: (lines: number) => string,
  render: (line: string) => string = line => line,
) {
  let droppedLines = 0
  if (!withErrorListener.has(stderr)) stderr.on('error', () => undefined)
  withErrorListener.add(stderr)
  return {
    write(line: string): void {
      if (stderr.writableLength > 0 && stderr.writableLength + line.length > MAX_LOG_BUFFER) {
        droppedLines++
        return
      }
      if (droppedLines > 0) {
        const lines = droppedLines
        droppedLines = 0
        stderr.write(render(formatDropped(lines)))
      }
      stderr.write(render(line))
    },
    async flush(limit: number): Promise<void> {
      const end = performance.now() + limit
      while (stderr.writableLength > 0 && performance.now() < end) {
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    },
  }
}

const FLUSH_TIME = 1_000
const SUPPRESSED = 'suppressed repeated log lines'
const DEBUG_HINT = 'Log level "debug" writes all lines'

/** An embedding program's log that throws must not end the process from a timer. */
function write(to: Logger, level: Exclude<keyof Logger, 'child'>, ...line: Parameters<Write>): void {
  try {
    to[level](...line)
  } catch {}
}

/**
 * Limits lines that clients can cause: warnings, errors and denied calls. Audit lines at `info` are never dropped. A log at level
 * `debug` or `trace` receives all lines.
 */
export function limitLog(log: Logger, clock = systemClock): Logger & { reportDropped(): void } {
  const warn = (kind: string, lines: number) =>
    write(log, 'warn', { code: 'MH1901', kind, lines, fix: DEBUG_HINT }, SUPPRESSED)
  const { allows, reportDropped } = createLogBudget(warn, clock)
  const isUnlimited = () => /^(?:debug|trace)$/.test(String(Reflect.get(log, 'level')))

  function limit(to: Logger): Logger {
    const limited =
      (level: 'info' | 'warn' | 'error'): Write =>
      (...line) => {
        const [fields, message = ''] = line
        const isLimited = (level !== 'info' || Object.hasOwn(fields ?? {}, 'denied')) && !isUnlimited()
        if (!isLimited || allows(message)) write(to, level, ...line)
      }
    return {
      debug: (...line) => write(to, 'debug', ...line),
      info: limited('info'),
      warn: limited('warn'),
      error: limited('error'),
      child: bindings => limit(to.child(bindings)),
    }
  }

  return { ...limit(log), reportDropped }
}

interface LoggerOptions {
  readonly verbose?: boolean
  /** Default: `info`. `debug` adds full stacks and removes line limits. */
  readonly level?: 'debug' | 'info' | 'warn' | 'error' | 'fatal'
  /** Added to each line if several processes share one log. */
  readonly pid?: number | undefined
  /** Stack traces show files relative to this folder. Default: the working directory. */
  readonly directory?: () => string
  readonly output?: LogOutput | undefined
  readonly render?: ((line: string) => string) | undefined
}

export function createLogger(options: LoggerOptions = {}): ProcessLog {
  const { verbose = false, level = verbose ? 'debug' : 'info', pid, directory = process.cwd, render } = options
  const base = pid === undefined ? null : { pid }
  const fullStack = level === 'debug'
  const formatDropped = (lines: number) =>
    `${JSON.stringify({ level: 40, time: Date.now(), ...base, code: 'MH1902', lines, msg: 'Dropped log lines because stderr is not read' })}\n`
  const writer = createLogWriter(options.output ?? process.stderr, formatDropped, render)
  const log = pino(
    {
      level,
      base,
      serializers: { err: (error: unknown) => describeFailure(error, { fullStack, directory: directory() }) },
      formatters: { log: cutFields },
    },
    writer,
  )
  const { reportDropped, ...limited } = limitLog(log as Logger)
  const flush = async () => {
    reportDropped()
    await writer.flush(FLUSH_TIME)
  }
  return { ...limited, fatal: log.fatal.bind(log), flush }
}
