// Logs errors of the OpenTelemetry SDK and exporter, at most one line a minute.
import type { DiagLogger } from '@opentelemetry/api'
import type { InternalHost } from '../../core/internal.ts'
import { plainText } from '../../core/transport.ts'
import type { OpenTelemetry } from './load-api.ts'

type Log = InternalHost['log']

/** Milliseconds during which repeated errors are counted but not logged. */
const QUIET = 60_000
/** Maximum characters of an error, because a response can be a whole page. */
const MOST = 300
const FIX = 'check the exporter and its receiver: docs/plugins/tracing.md#when-spans-cannot-be-sent'

/** Extracts the message, because SDKs log errors as JSON with stack and response. */
function messageIn(text: string): string {
  if (!text.startsWith('{')) return text
  try {
    const { message } = JSON.parse(text)
    return typeof message === 'string' && message !== '' ? message : text
  } catch {
    return text
  }
}

function problemIn(said: unknown): string {
  const message = messageIn(String(said)).slice(0, MOST)
  return plainText(message.replace(/\p{Cc}/gu, ' '), MOST)
}

function createTelling(write: (fields: object) => void, now: () => number) {
  let quietUntil = -Infinity
  let pending = 0
  let last = ''
  const told = (problem: string, failures: number) => write({ problem, failures, fix: FIX })
  return {
    hear(said: unknown) {
      last = problemIn(said)
      pending++
      if (now() < quietUntil) return
      quietUntil = now() + QUIET
      told(last, pending)
      pending = 0
    },
    settle() {
      if (pending > 0) told(last, pending)
      pending = 0
    },
  }
}

interface FailureLog {
  readonly logger: DiagLogger
  settle(): void
}

export function createFailureLog(log: Log, now: () => number = () => performance.now()): FailureLog {
  const errors = createTelling(
    fields => log.error({ code: 'MH2622', ...fields }, 'OpenTelemetry failed: spans may be lost'),
    now,
  )
  const warnings = createTelling(fields => log.warn({ code: 'MH2622', ...fields }, 'OpenTelemetry warned'), now)
  const ignore = () => undefined
  return {
    logger: { error: errors.hear, warn: warnings.hear, info: ignore, debug: ignore, verbose: ignore },
    settle() {
      errors.settle()
      warnings.settle()
    },
  }
}

/** The global registry of all copies of the API, for which the API has no getter. */
const API = Symbol.for('opentelemetry.js.api.1')
const loggerNow = (): unknown => Object(Reflect.get(globalThis, API)).diag

/** The API supports one logger per process. */
const listening = new Set<DiagLogger>()
let ours: unknown

const toAll =
  (level: 'error' | 'warn') =>
  (said: string): void => {
    for (const logger of listening) logger[level](said)
  }

interface FailureTelling {
  /** Does nothing if the program or its SDK has set a logger. */
  begin(): void
  end(): void
}

export function createFailureTelling({ diag, DiagLogLevel }: OpenTelemetry, log: Log): FailureTelling {
  const { logger, settle } = createFailureLog(log)
  return {
    begin() {
      listening.add(logger)
      if (loggerNow() !== undefined) return
      const ignore = () => undefined
      const all = { error: toAll('error'), warn: toAll('warn'), info: ignore, debug: ignore, verbose: ignore }
      diag.setLogger(all, DiagLogLevel.WARN)
      ours = loggerNow()
    },
    end() {
      settle()
      listening.delete(logger)
      // Another logger was possibly set since.
      if (listening.size === 0 && ours !== undefined && loggerNow() === ours) diag.disable()
    },
  }
}
