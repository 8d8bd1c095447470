// What the SDK and its exporter cannot do, told to the log of the host: else nobody hears of a receiver that is away. One line,
// then how many more there were, once a minute at most.
import type { DiagLogger } from '@opentelemetry/api'
import type { PluginHost } from '../../core/index.ts'
import { plainText } from '../../core/transport.ts'
import type { OpenTelemetry } from './load-api.ts'

type Log = PluginHost['log']

/** How long what fails again is only counted, milliseconds. */
const QUIET = 60_000
/** Characters of a problem in a line: a receiver may answer with a page. */
const MOST = 300
const FIX = 'look at the exporter and its receiver: docs/plugins/tracing.md#when-spans-cannot-be-sent'

/** SDKs write errors as JSON, with a stack and what the receiver said. */
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

/** Of one kind, such as errors. */
function createTelling(write: (fields: object) => void, now: () => number) {
  let quietUntil = -Infinity
  let untold = 0
  let last = ''
  const told = (problem: string, failures: number) => write({ problem, failures, fix: FIX })
  return {
    hear(said: unknown) {
      last = problemIn(said)
      untold++
      if (now() < quietUntil) return
      quietUntil = now() + QUIET
      told(last, untold)
      untold = 0
    },
    /** Tells what was only counted. */
    settle() {
      if (untold > 0) told(last, untold)
      untold = 0
    },
  }
}

export interface FailureLog {
  readonly logger: DiagLogger
  settle(): void
}

export function createFailureLog(log: Log, now: () => number = () => performance.now()): FailureLog {
  const errors = createTelling(fields => log.error(fields, 'OpenTelemetry failed: spans may be lost'), now)
  const warnings = createTelling(fields => log.warn(fields, 'OpenTelemetry warned'), now)
  const ignore = () => undefined
  return {
    logger: { error: errors.hear, warn: warnings.hear, info: ignore, debug: ignore, verbose: ignore },
    settle() {
      errors.settle()
      warnings.settle()
    },
  }
}

/** Where all copies of the API keep what is set; it has no way to ask for it. */
const API = Symbol.for('opentelemetry.js.api.1')
const loggerNow = (): unknown => Object(Reflect.get(globalThis, API)).diag

/** The hosts of this process, which share one logger, as the API has it. */
const listening = new Set<DiagLogger>()
let ours: unknown

const toAll =
  (level: 'error' | 'warn') =>
  (said: string): void => {
    for (const logger of listening) logger[level](said)
  }

export interface FailureTelling {
  /** From now on, unless the program, or its SDK, has set a logger of its own. */
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
      // Whoever set another since has it.
      if (listening.size === 0 && ours !== undefined && loggerNow() === ours) diag.disable()
    },
  }
}
