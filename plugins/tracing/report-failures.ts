// Logs errors of the OpenTelemetry SDK and exporter, at most one line a minute.
import type { DiagLogger } from '@opentelemetry/api'
import type { InternalHost } from '../../core/internal.ts'
import { plainText } from '../../core/transport.ts'
import type { OpenTelemetry } from './load-api.ts'

type Log = InternalHost['log']

/** Milliseconds during which repeated errors are counted but not logged. */
const INTERVAL = 60_000
/** Maximum characters of an error, because a response can be a whole page. */
const MAX_LENGTH = 300
const FIX = 'check the exporter and its receiver: docs/plugins/tracing.md#when-spans-cannot-be-sent'

/** Extracts the message, because SDKs log errors as JSON with stack and response. */
function extractMessage(text: string): string {
  if (!text.startsWith('{')) return text
  try {
    const { message } = JSON.parse(text)
    return typeof message === 'string' && message !== '' ? message : text
  } catch {
    return text
  }
}

function formatProblem(said: unknown): string {
  const message = extractMessage(String(said)).slice(0, MAX_LENGTH)
  return plainText(message.replace(/\p{Cc}/gu, ' '), MAX_LENGTH)
}

function createThrottle(write: (fields: object) => void, now: () => number) {
  let silentUntil = -Infinity
  let unreported = 0
  let last = ''
  const writeLine = (problem: string, failures: number) => write({ problem, failures, fix: FIX })
  return {
    add(said: unknown) {
      last = formatProblem(said)
      unreported++
      if (now() < silentUntil) return
      silentUntil = now() + INTERVAL
      writeLine(last, unreported)
      unreported = 0
    },
    flush() {
      if (unreported > 0) writeLine(last, unreported)
      unreported = 0
    },
  }
}

export function createFailureLog(log: Log, now: () => number = () => performance.now()) {
  const errors = createThrottle(
    fields => log.error({ code: 'MH2622', ...fields }, 'OpenTelemetry failed: spans may be lost'),
    now,
  )
  const warnings = createThrottle(fields => log.warn({ code: 'MH2622', ...fields }, 'OpenTelemetry warned'), now)
  const ignore = () => undefined
  return {
    logger: { error: errors.add, warn: warnings.add, info: ignore, debug: ignore, verbose: ignore },
    settle() {
      errors.flush()
      warnings.flush()
    },
  }
}

/** The global registry of all copies of the API, for which the API has no getter. */
const API = Symbol.for('opentelemetry.js.api.1')
const currentLogger = (): unknown => Object(Reflect.get(globalThis, API)).diag

/** The API supports one logger per process. */
const loggers = new Set<DiagLogger>()
let ownLogger: unknown

const broadcast =
  (level: 'error' | 'warn') =>
  (said: string): void => {
    for (const logger of loggers) logger[level](said)
  }

interface FailureReporter {
  /** Does nothing if the program or its SDK has set a logger. */
  start(): void
  end(): void
}

export function createFailureReporter({ diag, DiagLogLevel }: OpenTelemetry, log: Log): FailureReporter {
  const { logger, settle } = createFailureLog(log)
  return {
    start() {
      loggers.add(logger)
      if (currentLogger() !== undefined) return
      const ignore = () => undefined
      const all = { error: broadcast('error'), warn: broadcast('warn'), info: ignore, debug: ignore, verbose: ignore }
      diag.setLogger(all, DiagLogLevel.WARN)
      ownLogger = currentLogger()
    },
    end() {
      settle()
      loggers.delete(logger)
      // Another logger was possibly set since.
      if (loggers.size === 0 && ownLogger !== undefined && currentLogger() === ownLogger) diag.disable()
    },
  }
}
